// What happens while the page is open: one stream, which can be paused without losing count.
import { get } from "./api.js";
import { debounce } from "./dom.js";

const RETRY_MS = 1500;
const listeners = new Set();
const watchers = new Set();
const status = { state: "connecting", paused: false, waiting: 0, trouble: "" };
let source = null;
let wasOpen = false;

const liveStatus = () => ({ ...status });

/** Called with each event; an event of type `refresh` means that something was missed: read everything again. */
export function onLive(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Called with the status whenever it changes. */
export function onStatus(watcher) {
  watchers.add(watcher);
  watcher(liveStatus());
  return () => watchers.delete(watcher);
}

function tell(changes) {
  Object.assign(status, changes);
  for (const watcher of watchers) watcher(liveStatus());
}

function deliver(event) {
  for (const listener of [...listeners]) listener(event);
}

const tellWaiting = debounce(() => tell({}), 100);

function received(frame) {
  let event;
  try {
    event = JSON.parse(frame.data);
  } catch {
    return; // not for us: the stream goes on
  }
  if (event.type === "hello") return;
  if (!status.paused) return deliver(event);
  status.waiting += 1;
  tellWaiting();
}

export function togglePause() {
  if (!status.paused) return tell({ paused: true, waiting: 0 });
  const missed = status.waiting;
  tell({ paused: false, waiting: 0 });
  if (missed) deliver({ type: "refresh" });
}

function opened() {
  const again = wasOpen;
  wasOpen = true;
  tell({ state: "open", trouble: "" });
  if (!again) return;
  if (status.paused) tell({ waiting: status.waiting + 1 });
  else deliver({ type: "refresh" });
}

/** A stream does not tell why it failed; any other question does. */
async function explain() {
  const said = await get("/api/meta").then(
    () => "The live stream ended.",
    (error) => [error.message, error.hint].filter(Boolean).join(": "),
  );
  if (status.state === "reconnecting") tell({ trouble: said });
}

export function connect() {
  source?.close();
  source = new EventSource("/api/live");
  source.onopen = opened;
  source.onmessage = received;
  source.onerror = () => {
    tell({ state: "reconnecting" });
    source.close();
    setTimeout(connect, RETRY_MS);
    explain();
  };
}
