// The content of a message, as it is: long texts fold, and nothing in them is interpreted.
import { h, replace } from "../base/dom.js";
import { count } from "../base/format.js";
import { icon } from "../base/icons.js";
import { oneLine, pretty, visible } from "../base/text.js";

// Chosen: a screen shows several messages, and most of them whole.
const FOLD_LINES = 14;
const FOLD_CHARS = 1600;

function firstLines(text) {
  const lines = text.split("\n");
  const head = lines.slice(0, FOLD_LINES).join("\n");
  return head.length > FOLD_CHARS ? head.slice(0, FOLD_CHARS) : head;
}

/** Make a block of text that can be unfolded. */
export function block(text, { fold = true, wasCut = false } = {}) {
  const value = String(text ?? "");
  const head = fold ? firstLines(value) : value;
  const cutNote = wasCut && h("p", { class: "quiet" }, "Cut here: the original has the rest.");
  const pre = h("pre", { class: "text", dir: "auto" }, visible(head));
  if (head.length === value.length)
    return h("div", { class: "block" }, pre, cutNote);
  let isOpen = false;
  const button = h("button", { class: "btn small ghost fold", type: "button", "aria-expanded": "false" });
  const draw = () => {
    replace(pre, visible(isOpen ? value : `${head}…`));
    replace(button, icon("down"), isOpen ? "Show less" : `Show all ${count(value.length, "character")}`);
    button.setAttribute("aria-expanded", String(isOpen));
  };
  button.addEventListener("click", () => {
    isOpen = !isOpen;
    draw();
  });
  draw();
  return h("div", { class: "block" }, pre, button, cutNote);
}

/** Name what is not text: pictures and other content are not shown. */
export function otherContent(types) {
  const others = (types ?? []).filter((type) => type !== "text");
  return others.length ? h("p", { class: "quiet" }, "also: ", visible(others.join(", "))) : null;
}

/** Make a block for each tool call of a message. */
export function toolCalls(calls) {
  return (calls ?? []).map((call) =>
    h(
      "div",
      { class: "tool-call" },
      h(
        "div",
        { class: "tool-name" },
        h("b", { class: "mono" }, visible(call.name)),
        h("span", { class: "faint mono clip" }, visible(call.id)),
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
    visible(role),
    tool && h("span", { class: "role-tool" }, oneLine(tool)),
  );
}
