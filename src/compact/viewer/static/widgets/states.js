// What a view shows while it loads, when there is nothing, and when a request failed.
import { h } from "../base/dom.js";
import { icon } from "../base/icons.js";
import { visible, withCode } from "../base/text.js";

export function loading(rows = 6) {
  const lines = Array.from({ length: rows }, (_, index) =>
    h(
      "div",
      { class: `skeleton-row w${index % 4}` },
      h("span", { class: "skeleton-line" }),
      h("span", { class: "skeleton-line" }),
    ),
  );
  return h("div", { class: "skeleton", role: "status", "aria-label": "Loading" }, lines);
}

export function empty({ title, text, command = "", iconName = "layers" }) {
  return h(
    "div",
    { class: "state" },
    h("div", { class: "state-icon" }, icon(iconName)),
    h("h2", null, title),
    h("p", null, text),
    command && h("pre", { class: "state-code" }, command),
  );
}

export function failed(error, retry) {
  return h(
    "div",
    { class: "state is-error", role: "alert" },
    h("div", { class: "state-icon" }, icon("error")),
    h("h2", null, visible(error.message)),
    error.hint && h("p", null, withCode(error.hint)),
    retry && h("button", { class: "btn", type: "button", on: { click: retry } }, "Try again"),
  );
}
