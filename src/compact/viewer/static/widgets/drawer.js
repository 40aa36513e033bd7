// A drawer at the side of the page: the original of a message, whole.
import { h, replace } from "../base/dom.js";
import { count } from "../base/format.js";
import { actionChip, icon } from "../base/icons.js";
import { pretty, visible } from "../base/text.js";
import { get, segment } from "../data/api.js";
import { block, otherContent, roleTag, toolCalls } from "./content.js";
import { copyButton, rawToggle } from "./copy.js";
import { failed, loading } from "./states.js";

let open = null;

export function closeDrawer() {
  if (!open) return false;
  const { el, focusedBefore, onClose } = open;
  open = null;
  el.remove();
  focusedBefore?.focus?.();
  onClose?.();
  return true;
}

/** Open a drawer; `body` may be filled later. */
export function openDrawer({ title, body, onClose }) {
  closeDrawer();
  const focusedBefore = document.activeElement;
  const closeButton = h(
    "button",
    {
      class: "btn ghost square",
      type: "button",
      "aria-label": "Close",
      title: "Close (Escape)",
      on: { click: closeDrawer },
    },
    icon("drop"),
  );
  const el = h(
    "aside",
    { class: "drawer", role: "dialog", "aria-label": title },
    h("div", { class: "drawer-head" }, h("h2", null, title), closeButton),
    h("div", { class: "drawer-body", tabindex: 0 }, body),
  );
  document.body.append(el);
  open = { el, focusedBefore, onClose };
  closeButton.focus();
  return el;
}

function messageDetails(message, extra) {
  const meta =
    message.meta && Object.keys(message.meta).length
      ? h("details", null, h("summary", null, "Meta"), block(pretty(message.meta)))
      : null;
  const raw = rawToggle(() => message.raw);
  return [
    h(
      "div",
      { class: "drawer-line" },
      roleTag(message.role, message.name ?? ""),
      actionChip(message.action),
      h("span", { class: "dim" }, count(message.tokens, "token")),
    ),
    h(
      "div",
      { class: "faint mono small" },
      visible(message.id),
      copyButton(message.id, { label: "", name: "Copy the id" }),
      message.tool_call_id
        ? [" answers ", visible(message.tool_call_id), copyButton(message.tool_call_id, { label: "", name: "Copy the call's id" })]
        : null,
    ),
    extra,
    h(
      "div",
      { class: "drawer-line" },
      h("h3", null, "Original, as in the log"),
      h("span", { class: "grow" }),
      message.text ? copyButton(message.text, { name: "Copy the text" }) : null,
      raw.button,
    ),
    raw.box,
    message.text ? block(message.text, { fold: message.text.length > 20_000 }) : h("p", { class: "quiet" }, "No text."),
    otherContent(message.content_types),
    toolCalls(message.tool_calls),
    meta,
  ];
}

/** Show the original of one message; `extra` stands above it. */
export function showMessage(session, id, { extra = null, onClose } = {}) {
  const body = h("div", null, loading(4));
  openDrawer({ title: "Message", body: [body], onClose });
  const load = () =>
    get(`/api/sessions/${segment(session)}/messages/${segment(id)}`)
      .then((message) => {
        replace(body, messageDetails(message, extra));
        body.closest(".drawer")?.querySelector("h2").replaceChildren(`Message ${message.seq}`);
      })
      .catch((error) => replace(body, failed(error, load)));
  load();
}
