// A sheet at the side: the original of a message, exactly.
import { get, part } from "./api.js";
import { block, otherParts, roleTag, toolCalls } from "./content.js";
import { h, replace } from "./dom.js";
import { count } from "./format.js";
import { actionChip, icon } from "./icons.js";
import { failed, loading } from "./states.js";
import { pretty, shown } from "./text.js";

let open = null;

export function closeDrawer() {
  if (!open) return false;
  const { el, before, onClose } = open;
  open = null;
  el.remove();
  before?.focus?.();
  onClose?.();
  return true;
}

/** Show a sheet; `body` may be filled later. */
export function openDrawer({ title, body, onClose }) {
  closeDrawer();
  const before = document.activeElement;
  const shut = h(
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
    h("div", { class: "drawer-head" }, h("h2", null, title), shut),
    h("div", { class: "drawer-body", tabindex: 0 }, body),
  );
  document.body.append(el);
  open = { el, before, onClose };
  shut.focus();
  return el;
}

function parts(message, extra) {
  const meta =
    message.meta && Object.keys(message.meta).length
      ? h("details", null, h("summary", null, "Meta"), block(pretty(message.meta)))
      : null;
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
      shown(message.id),
      message.tool_call_id ? [" answers ", shown(message.tool_call_id)] : null,
    ),
    extra,
    h("h3", null, "Original, as it is in the log"),
    message.text ? block(message.text, { fold: message.text.length > 20_000 }) : h("p", { class: "quiet" }, "No text."),
    otherParts(message.parts),
    toolCalls(message.tool_calls),
    meta,
  ];
}

/** The original of one message, with what stands for it if that is known. */
export function showMessage(session, id, { extra = null, onClose } = {}) {
  const body = h("div", null, loading(4));
  openDrawer({ title: "Message", body: [body], onClose });
  const load = () =>
    get(`/api/sessions/${part(session)}/messages/${part(id)}`)
      .then((message) => {
        replace(body, parts(message, extra));
        body.closest(".drawer")?.querySelector("h2").replaceChildren(`Message ${message.seq}`);
      })
      .catch((error) => replace(body, failed(error, load)));
  load();
}
