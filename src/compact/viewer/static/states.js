// Nothing there, not there yet, went wrong: each of these is a view too.
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { shown } from "./text.js";

export function loading(rows = 6) {
  const bones = Array.from({ length: rows }, (_, index) =>
    h("div", { class: `bone-row b${index % 4}` }, h("span", { class: "bone" }), h("span", { class: "bone" })),
  );
  return h("div", { class: "bones", role: "status", "aria-label": "Loading" }, bones);
}

export function empty({ title, text, command = "", picture = "layers" }) {
  return h(
    "div",
    { class: "state" },
    h("div", { class: "state-icon" }, icon(picture)),
    h("h2", null, title),
    h("p", null, text),
    command && h("pre", { class: "state-code" }, command),
  );
}

export function failed(error, again) {
  return h(
    "div",
    { class: "state is-error", role: "alert" },
    h("div", { class: "state-icon" }, icon("error")),
    h("h2", null, shown(error.message)),
    error.hint && h("p", null, shown(error.hint)),
    again && h("button", { class: "btn", type: "button", on: { click: again } }, "Try again"),
  );
}
