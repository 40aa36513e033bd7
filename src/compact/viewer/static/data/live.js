// The stream of updates, which can be paused: what was missed meanwhile is read again at once.
import { debounce } from "../base/dom.js";
import { get } from "./api.js";

const RETRY_MS = 1500;
const listeners = new Set();
const statusListeners = new Set();
const status = { state: "connecting", paused: false, waiting: 0, problem: "" };
let retry = 0;
let source = null;
let wasOpen = false;

/** Call a listener with each update; one of type `refresh` means that some were missed: read everything again. */
export function onLive(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Call a listener with the status now and whenever it changes. */
export function onStatus(listener) {
  statusListeners.add(listener);
  listener({ ...status });
  return () => statusListeners.delete(listener);
}

function setStatus(changes) {
  Object.assign(status, changes);
  for (const listener of statusListeners) listener({ ...status });
}

function dispatch(event) {
  for (const listener of [...listeners]) listener(event);
}

const showWaiting = debounce(() => setStatus({}), 100);

function receive(frame) {
  let event;
  try {
    event = JSON.parse(frame.data);
  } catch {
    return; // not one of our frames: the stream goes on
  }
  if (event.type === "hello") return;
  if (!status.paused) return dispatch(event);
  status.waiting += 1;
  showWaiting();
}

export function togglePause() {
  if (!status.paused) return setStatus({ paused: true, waiting: 0 });
  const missed = status.waiting;
  setStatus({ paused: false, waiting: 0 });
  if (missed) dispatch({ type: "refresh" });
}

function handleOpen() {
  const isReconnected = wasOpen;
  wasOpen = true;
  setStatus({ state: "open", problem: "" });
  if (!isReconnected) return;
  if (status.paused) setStatus({ waiting: status.waiting + 1 });
  else dispatch({ type: "refresh" });
}

/** Find out why the stream failed: it does not say, but any other request does. */
async function findProblem() {
  const problem = await get("/api/meta").then(
    () => "The live stream ended.",
    (error) => {
      if (error.status === 401) disconnect(); // the page asks for the token, and connects again with it
      // What the server says is no sentence, and what is said here is.
      return [error.message, error.hint].filter(Boolean).join(error.message.endsWith(".") ? " " : ": ");
    },
  );
  if (status.state === "reconnecting") setStatus({ problem });
}

function disconnect() {
  clearTimeout(retry);
  source?.close();
  setStatus({ state: "off" });
}

export function connect() {
  source?.close();
  source = new EventSource("/api/live");
  source.onopen = handleOpen;
  source.onmessage = receive;
  source.onerror = () => {
    setStatus({ state: "reconnecting" });
    source.close();
    retry = setTimeout(connect, RETRY_MS);
    findProblem();
  };
}
