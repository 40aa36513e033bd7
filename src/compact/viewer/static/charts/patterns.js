// The parts of a prompt: each has a colour that the colour-blind can tell apart, and a pattern of its own.
import { s } from "../dom.js";

export const PARTS = [
  { key: "system", name: "System" },
  { key: "developer", name: "Developer" },
  { key: "tools", name: "Tools" },
  { key: "pinned", name: "Pinned" },
  { key: "ledger", name: "Ledger" },
  { key: "summary", name: "Summary" },
  { key: "dialogue", name: "Dialogue" },
  { key: "tool_results", name: "Tool results" },
  { key: "stubs", name: "Stubs" },
  { key: "rehydrated", name: "Rehydrated" },
  { key: "injected", name: "Injected" },
  { key: "overhead", name: "Overhead" },
];

export const MEANING = {
  system: "the system prompt",
  developer: "developer messages",
  tools: "tool schemas",
  pinned: "protected messages",
  ledger: "facts that code keeps word for word",
  summary: "the narrative",
  dialogue: "what users and the agent said, and its calls",
  tool_results: "what tools returned",
  stubs: "what stands for cleared or externalised messages",
  rehydrated: "artifacts shown again for this turn",
  injected: "content added for this call",
  overhead: "what frames the messages on the wire",
  free: "room that is left",
};

const DRAWN = {
  developer: ["M0 4h8", 8],
  tools: ["M-1 7 7 -1M5 9 9 5M-1 3 3 -1", 8],
  pinned: ["M2 2h.01M6 6h.01", 8],
  ledger: ["M0 3h8M0 7h8", 8],
  summary: ["M0 0 8 8M8 0 0 8", 8],
  tool_results: ["M0 2h.01M4 6h.01", 8],
  stubs: ["M0 6h8", 12],
  rehydrated: ["M2 0v8", 8],
  injected: ["M2 0v8M6 0v8", 8],
  free: ["M-1 9 9 -1", 8],
};

let made = 0;

/** Patterns for one drawing, with `url(#…)` names that no other drawing uses. */
export function patterns() {
  const prefix = `pat${(made += 1)}-`;
  const defs = s(
    "defs",
    null,
    Object.entries(DRAWN).map(([key, [d, size]]) =>
      s(
        "pattern",
        { id: prefix + key, width: size, height: size, patternUnits: "userSpaceOnUse" },
        s("path", { d, class: `pattern-line pattern-${key}` }),
      ),
    ),
  );
  return { defs, url: (key) => (key in DRAWN ? `url(#${prefix}${key})` : null) };
}

export function swatch(key) {
  const { defs, url } = patterns();
  return s(
    "svg",
    { class: "swatch", viewBox: "0 0 14 14", "aria-hidden": "true" },
    defs,
    s("rect", { width: 14, height: 14, rx: 3, class: `part part-${key}` }),
    url(key) && s("rect", { width: 14, height: 14, rx: 3, fill: url(key) }),
  );
}
