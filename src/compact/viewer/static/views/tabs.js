// The tabs of a session.
import { h } from "../base/dom.js";
import { to } from "../router.js";

const TABS = [
  ["timeline", "Timeline", []],
  ["messages", "Messages", ["messages"]],
  ["why", "Why", ["why"]],
  ["traces", "Traces", ["traces"]],
];

export function sessionTabs(id, current) {
  return h(
    "nav",
    { class: "subtabs", "aria-label": "Session" },
    TABS.map(([key, text, path]) =>
      h(
        "a",
        { class: "subtab", href: to(["s", id, ...path]), "aria-current": key === current ? "page" : undefined },
        text,
      ),
    ),
  );
}
