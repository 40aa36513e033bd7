// The page: shows the view that the address names.
import { h, replace } from "./base/dom.js";
import { visibleText } from "./base/text.js";
import { meta, TOKEN_NEEDED } from "./data/api.js";
import { connect, onLive, togglePause } from "./data/live.js";
import { listen, showHelp } from "./keys.js";
import { parse } from "./router.js";
import { drawTop, setCrumbs } from "./shell.js";
import { toggleTheme } from "./theme.js";
import { callView } from "./views/call.js";
import { compactionView } from "./views/compaction.js";
import { compareView } from "./views/compare.js";
import { messagesView } from "./views/messages.js";
import { sessionView } from "./views/session.js";
import { sessionsView } from "./views/sessions.js";
import { traceView } from "./views/trace.js";
import { tracesView } from "./views/traces.js";
import { whyView } from "./views/why.js";
import { loginForm } from "./views/login.js";
import { failed } from "./widgets/states.js";

const main = document.getElementById("view");
const visited = [];
const scrollPositions = new Map();
let current = null;

/** Return the view that an address names, and its arguments. */
function route({ path, params }) {
  const [head, id, kind, which] = path;
  if (!head || head === "sessions") return [sessionsView, { params }];
  if (head === "traces") return [tracesView, { params }];
  if (head === "compare") return [compareView, { params }];
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

/** Return what a view gets: where to draw, and what to do when it is left. */
function viewContext() {
  const controller = new AbortController();
  const cleanups = [() => controller.abort()];
  return {
    main,
    signal: controller.signal,
    crumbs: (crumbs, section) => {
      setCrumbs(crumbs, section);
      document.title = titleOf(crumbs);
    },
    onLive: (listener) => cleanups.push(onLive(listener)),
    onLeave: (cleanup) => cleanups.push(cleanup),
    leave: () => cleanups.forEach((cleanup) => cleanup()),
  };
}

async function show() {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const address = location.hash || "#/";
  const isBack = visited.at(-2) === address;
  leave();
  if (isBack) visited.pop();
  else if (visited.at(-1) !== address) visited.push(address);
  const [view, args] = route(parse(address));
  const ctx = viewContext();
  const shown = { ctx, address, onKey: null };
  current = shown;
  try {
    if (!view) throw new Error("There is no such page.");
    const handlers = await view(ctx, args);
    if (current !== shown) return;
    shown.onKey = handlers?.onKey ?? null;
    if (isBack && scrollPositions.has(address)) main.scrollTop = scrollPositions.get(address);
  } catch (error) {
    if (current !== shown || error.name === "AbortError") return;
    if (error.status !== 401) replace(main, failed(error, show));
  }
}

/** Ask for the token in place of any view: none can show anything without it. */
function askForToken() {
  if (main.querySelector(".login")) return;
  leave();
  document.title = "Compact";
  setCrumbs([]);
  replace(main, h("div", { class: "page" }, loginForm(loggedIn)));
}

/** Return a title that names the session first: tabs of a browser are narrow. */
function titleOf(crumbs) {
  const [, ...inner] = crumbs;
  const names = inner.length ? inner : crumbs;
  return [...names.map(({ text }) => visibleText(text)), "Compact"].join(" · ");
}

function loggedIn() {
  connect();
  show();
}

function leave() {
  if (!current) return;
  scrollPositions.set(current.address, main.scrollTop);
  current.ctx.leave();
  current = null;
  main.scrollTop = 0;
}

function goUp() {
  const { path } = parse(location.hash);
  if (path[0] === "s" && path.length > 2) location.hash = `#/s/${encodeURIComponent(path[1])}`;
  else if (path[0] === "t") location.hash = "#/traces";
  else if (path.length) location.hash = "#/";
}

const focusSearch = () => main.querySelector("input[type=search]")?.focus();

function start() {
  drawTop();
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  window.addEventListener("hashchange", show);
  document.addEventListener(TOKEN_NEEDED, askForToken);
  listen(
    {
      "/": focusSearch,
      "?": showHelp,
      " ": togglePause,
      Escape: goUp,
      t: () => {
        toggleTheme();
        drawTop();
      },
    },
    (event) => Boolean(current?.onKey?.(event)),
  );
  connect();
  meta().catch(() => {}); // the banner says when the server does not answer
  show();
}

start();
