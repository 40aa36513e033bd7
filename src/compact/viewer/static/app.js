// The page: what is on top, and which view is in front.
import { meta } from "./api.js";
import { replace } from "./dom.js";
import { listen, showHelp } from "./keys.js";
import { connect, onLive, togglePause } from "./live.js";
import { parse } from "./router.js";
import { drawTop, setCrumbs } from "./shell.js";
import { failed } from "./states.js";
import { plain } from "./text.js";
import { toggleTheme } from "./theme.js";
import { callView } from "./views/call.js";
import { compactionView } from "./views/compaction.js";
import { messagesView } from "./views/messages.js";
import { sessionView } from "./views/session.js";
import { sessionsView } from "./views/sessions.js";
import { traceView } from "./views/trace.js";
import { tracesView } from "./views/traces.js";
import { whyView } from "./views/why.js";

const main = document.getElementById("view");
const visited = [];
const scrolled = new Map();
let front = null;

/** Which view an address names, with what it needs to know. */
function route({ path, params }) {
  const [head, id, kind, which] = path;
  if (!head || head === "sessions") return [sessionsView, { params }];
  if (head === "traces") return [tracesView, { params }];
  if (head === "t" && id) return [traceView, { trace: id, params }];
  if (head !== "s" || !id) return [null, {}];
  const views = {
    p: compactionView,
    c: callView,
    messages: messagesView,
    m: messagesView,
    why: whyView,
    traces: tracesView,
  };
  if (!kind) return [sessionView, { session: id, params }];
  return [views[kind] ?? null, { session: id, which, params, ...(kind === "m" ? { message: which } : {}) }];
}

function context() {
  const stop = new AbortController();
  const ends = [() => stop.abort()];
  return {
    main,
    signal: stop.signal,
    crumbs: (crumbs, section) => {
      setCrumbs(crumbs, section);
      document.title = `${plain(crumbs.at(-1)?.text ?? "Compact")} · Compact`;
    },
    onLive: (listener) => ends.push(onLive(listener)),
    onEnd: (end) => ends.push(end),
    end: () => ends.forEach((end) => end()),
  };
}

async function show() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const address = location.hash || "#/";
  const isBack = visited.at(-2) === address;
  leave();
  if (isBack) visited.pop();
  else if (visited.at(-1) !== address) visited.push(address);
  const [view, given] = route(parse(address));
  const ctx = context();
  front = { ctx, address, keys: null };
  const mine = front;
  try {
    if (!view) throw new Error("There is no such page.");
    const made = await view(ctx, given);
    if (front !== mine) return;
    front.keys = made?.keys ?? null;
    if (isBack && scrolled.has(address)) main.scrollTop = scrolled.get(address);
  } catch (error) {
    if (front !== mine || error.name === "AbortError") return;
    replace(main, failed(error, show));
  }
}

function leave() {
  if (!front) return;
  scrolled.set(front.address, main.scrollTop);
  front.ctx.end();
  front = null;
  main.scrollTop = 0;
}

function up() {
  const { path } = parse(location.hash);
  if (path[0] === "s" && path.length > 2) location.hash = `#/s/${encodeURIComponent(path[1])}`;
  else if (path[0] === "t") location.hash = "#/traces";
  else if (path.length) location.hash = "#/";
}

const search = () => main.querySelector("input[type=search]")?.focus();

function start() {
  drawTop();
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  window.addEventListener("hashchange", show);
  listen(
    {
      "/": search,
      "?": showHelp,
      " ": togglePause,
      Escape: up,
      t: () => {
        toggleTheme();
        drawTop();
      },
    },
    (event) => Boolean(front?.keys?.(event)),
  );
  connect();
  meta().catch(() => {}); // the banner tells when the server is gone
  show();
}

start();
