// What failed, and what was done instead.
import { h } from "../base/dom.js";
import { icon } from "../base/icons.js";
import { visible } from "../base/text.js";

const nameOf = ({ what }) => (what === "summary" ? "The summary" : `The strategy ${what}`);

/** A red badge that says what failed; null if nothing did. */
export function failureBadge(failures) {
  if (!failures?.length) return null;
  const text = failures[0].what === "summary" ? "summary failed" : "strategy failed";
  return h("span", { class: "badge is-error", title: failures.map((one) => one.text).join("\n") }, icon("error"), text);
}

/** A red box for each failure: what failed, with which error, and what stands in its place. */
export function failureNotes(failures) {
  return (failures ?? []).map((failure) =>
    h(
      "div",
      { class: "failure", role: "alert" },
      icon("error"),
      h(
        "div",
        null,
        h("b", null, visible(`${nameOf(failure)} failed: ${failure.instead}.`)),
        h("p", { class: "mono small" }, visible([failure.error_type, failure.message].filter(Boolean).join(": "))),
      ),
    ),
  );
}
