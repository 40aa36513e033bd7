// The keyboard: one place decides what a key means, the view in front is asked first.
import { h } from "./dom.js";
import { openDialog } from "./dialog.js";

const HELP = [
  ["j k or ↓ ↑", "next and previous row"],
  ["Enter", "open the row"],
  ["Escape", "close, or go up one level"],
  ["/", "search, or ask why"],
  ["← →", "move along the timeline, or to the next call or compaction"],
  ["+ − 0", "zoom the timeline in, out, back"],
  ["Space", "pause and resume live updates"],
  ["t", "dark or light"],
  ["g then s or t", "sessions, traces"],
  ["?", "this list"],
];

const TYPING = "input, textarea, select, [contenteditable]";
const PRESSING = "button, summary, [role=button], [role=tab], [role=switch]";

export function showHelp() {
  const rows = HELP.map(([keys, what]) => [
    h(
      "dt",
      null,
      keys.split(" ").map((key) => (/^(or|and|then)$/.test(key) ? ` ${key} ` : h("kbd", null, key))),
    ),
    h("dd", null, what),
  ]);
  openDialog({ title: "Keyboard", body: [h("dl", { class: "keys" }, rows)], close: "Close" });
}

let leader = 0;

function twoStroke(event) {
  const isSecond = Date.now() - leader < 1200;
  leader = event.key === "g" ? Date.now() : 0;
  if (!isSecond) return false;
  const goal = { s: "#/", t: "#/traces" }[event.key];
  if (goal) location.hash = goal;
  return Boolean(goal);
}

function isPlain(event) {
  return !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
}

/** `commands` maps a key to what the page does with it; `inFront()` gives the keys of the view, asked first. */
export function listen(commands, inFront) {
  document.addEventListener("keydown", (event) => {
    if (!isPlain(event) || document.querySelector("dialog[open]")) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest(TYPING)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (target.closest(PRESSING) && (event.key === " " || event.key === "Enter")) return;
    if (twoStroke(event) || inFront(event) || run(commands, event)) event.preventDefault();
  });
}

function run(commands, event) {
  const command = commands[event.key];
  if (!command) return false;
  command();
  return true;
}
