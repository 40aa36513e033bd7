// The sides of a session.
import { h } from "../dom.js";
import { to } from "../router.js";

const SIDES = [
  ["timeline", "Timeline", []],
  ["messages", "Messages", ["messages"]],
  ["why", "Why", ["why"]],
  ["traces", "Traces", ["traces"]],
];

export function sessionTabs(id, now) {
  return h(
    "nav",
    { class: "subtabs", "aria-label": "Session" },
    SIDES.map(([key, text, path]) =>
      h("a", { class: "subtab", href: to(["s", id, ...path]), "aria-current": key === now ? "page" : undefined }, text),
    ),
  );
}
