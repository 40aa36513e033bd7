// The keyboard: the current view handles a key first, then the page.
import { h } from "./base/dom.js";
import { openDialog } from "./widgets/dialog.js";

const HELP = [
  ["j k or ↓ ↑", "next and previous row"],
  ["Enter", "open the row"],
  ["Escape", "close, or go up one level"],
  ["/", "search"],
  ["← →", "move along the timeline, or to the next call or compaction"],
  ["+ − 0", "zoom the timeline in, out, back"],
  ["n", "next error of a trace"],
  ["Space", "pause and resume live updates"],
  ["t", "dark or light"],
  ["g then s or t", "sessions, traces"],
  ["?", "this list"],
];

const INPUTS = "input, textarea, select, [contenteditable]";
const BUTTONS = "button, summary, [role=button], [role=tab], [role=switch]";

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

let leaderPressedAt = 0;

/** Handle "g then s" and "g then t". */
function handleSequence(event) {
  const isSecond = Date.now() - leaderPressedAt < 1200;
  leaderPressedAt = event.key === "g" ? Date.now() : 0;
  if (!isSecond) return false;
  const target = { s: "#/", t: "#/traces" }[event.key];
  if (target) location.hash = target;
  return Boolean(target);
}

function hasNoModifier(event) {
  return !event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented;
}

/** Listen to keys: `handleInView(event)` returns true for those the view uses, `commands` are those of the page. */
export function listen(commands, handleInView) {
  document.addEventListener("keydown", (event) => {
    if (!hasNoModifier(event) || document.querySelector("dialog[open]")) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest(INPUTS)) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (target.closest(BUTTONS) && (event.key === " " || event.key === "Enter")) return;
    if (handleSequence(event) || handleInView(event) || run(commands, event)) event.preventDefault();
  });
}

function run(commands, event) {
  const command = commands[event.key];
  if (!command) return false;
  command();
  return true;
}
