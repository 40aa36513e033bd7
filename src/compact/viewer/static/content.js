// The text of a message, as it is: long ones fold, nothing in them is obeyed.
import { h, replace } from "./dom.js";
import { icon } from "./icons.js";
import { whole } from "./format.js";
import { oneLine, pretty, shown } from "./text.js";

const FOLD_LINES = 14;
const FOLD_CHARS = 1600;

function cut(text) {
  const lines = text.split("\n");
  const head = lines.slice(0, FOLD_LINES).join("\n");
  return head.length > FOLD_CHARS ? head.slice(0, FOLD_CHARS) : head;
}

/** A block of text that opens and closes. */
export function block(text, { fold = true, wasCut = false } = {}) {
  const value = String(text ?? "");
  const head = fold ? cut(value) : value;
  const pre = h("pre", { class: "text", dir: "auto" }, shown(head));
  if (head.length === value.length)
    return h("div", { class: "block" }, pre, wasCut && h("p", { class: "quiet" }, "Longer than the page shows."));
  let isOpen = false;
  const button = h("button", { class: "btn small ghost fold", type: "button", "aria-expanded": "false" });
  const draw = () => {
    replace(pre, shown(isOpen ? value : `${head}…`));
    replace(button, icon("down"), isOpen ? "Show less" : `Show all ${whole(value.length)} characters`);
    button.setAttribute("aria-expanded", String(isOpen));
  };
  button.addEventListener("click", () => {
    isOpen = !isOpen;
    draw();
  });
  draw();
  return h("div", { class: "block" }, pre, button, wasCut && h("p", { class: "quiet" }, "Longer than the page shows."));
}

/** Pictures and other parts are named, not shown. */
export function otherParts(kinds) {
  const others = (kinds ?? []).filter((kind) => kind !== "text");
  return others.length ? h("p", { class: "quiet" }, "also: ", shown(others.join(", "))) : null;
}

/** The calls of tools in a message. */
export function toolCalls(calls) {
  return (calls ?? []).map((call) =>
    h(
      "div",
      { class: "tool-call" },
      h(
        "div",
        { class: "tool-name" },
        h("b", { class: "mono" }, shown(call.name)),
        h("span", { class: "faint mono clip" }, shown(call.id)),
      ),
      block(pretty(call.arguments ?? "")),
    ),
  );
}

export function roleTag(role, tool = "") {
  const known = ["system", "developer", "user", "assistant", "tool"].includes(role) ? role : "other";
  return h(
    "span",
    { class: `role role-${known}` },
    shown(role),
    tool && h("span", { class: "role-tool" }, oneLine(tool)),
  );
}
