// The parts of a prompt, in its order; their names are those of `PromptPart` on the server.
// Colours (css/base.css) can be told apart by the colour-blind, and parts that touch differ in pattern too.
import { s } from "../base/dom.js";

/** `pattern` is a path on a tile of 8 by 8 pixels, drawn over the colour of the part. */
export const PARTS = [
  { key: "system", name: "System", meaning: "system messages and instructions" },
  { key: "developer", name: "Developer", meaning: "developer messages", pattern: "M0 4h8" },
  { key: "tools", name: "Tools", meaning: "tool schemas", pattern: "M-1 7 7 -1M5 9 9 5M-1 3 3 -1" },
  { key: "pinned", name: "Pinned", meaning: "protected messages", pattern: "M2 2h.01M6 6h.01" },
  { key: "ledger", name: "Ledger", meaning: "facts in the summary, kept word for word", pattern: "M0 2h8M0 6h8" },
  { key: "summary", name: "Summary", meaning: "the rest of the summary", pattern: "M0 0 8 8M8 0 0 8" },
  { key: "dialogue", name: "Dialogue", meaning: "what users and the agent said, with its tool calls" },
  { key: "tool_results", name: "Tool results", meaning: "what tools returned", pattern: "M2 2h.01M6 6h.01" },
  { key: "stubs", name: "Stubs", meaning: "cleared or externalised messages", pattern: "M-1 -1 9 9M-1 7 1 9M7 -1 9 1" },
  { key: "rehydrated", name: "Rehydrated", meaning: "artifacts shown again for this turn", pattern: "M2 0v8M6 0v8" },
  { key: "injected", name: "Injected", meaning: "content added to this prompt only", pattern: "M4 1.5v5M1.5 4h5" },
  { key: "overhead", name: "Overhead", meaning: "what frames the messages", pattern: "M0 0h8M0 0v8" },
];
export const FREE = { key: "free", name: "Free", meaning: "room that is left in the window", pattern: "M-1 9 9 -1" };
const TILE = 8;
const PATTERNS = new Map([...PARTS, FREE].filter(({ pattern }) => pattern).map((part) => [part.key, part.pattern]));

/** Return the parts that occur in any of the given prompts, in order. */
export function occurringParts(prompts) {
  return PARTS.filter(({ key }) => prompts.some((parts) => parts?.[key]));
}

let definitions = null;

/** Put the patterns into the document, once: every drawing refers to them. */
function definePatterns() {
  definitions = s(
    "svg",
    { class: "pattern-definitions", width: 0, height: 0, "aria-hidden": "true" },
    s(
      "defs",
      null,
      [...PATTERNS].map(([key, d]) =>
        s(
          "pattern",
          { id: `pattern-${key}`, width: TILE, height: TILE, patternUnits: "userSpaceOnUse" },
          s("path", { d, class: `pattern-line pattern-line-${key}` }),
        ),
      ),
    ),
  );
  document.body.append(definitions);
}

/** Return the fill that draws the pattern of a part; null for a part that has none. */
export function patternFill(key) {
  if (!definitions) definePatterns();
  return PATTERNS.has(key) ? `url(#pattern-${key})` : null;
}

/** Make a shape of a part: its colour, and its pattern over it. */
export function partShapes(tag, key, props) {
  const fill = patternFill(key);
  return [
    s(tag, { ...props, class: `part part-${key}` }),
    fill && s(tag, { ...props, class: "overlay", fill }),
  ];
}

/** Make the small square of a part in a legend. */
export function swatch(key) {
  return s(
    "svg",
    { class: "swatch", viewBox: "0 0 14 14", "aria-hidden": "true" },
    partShapes("rect", key, { width: 14, height: 14, rx: 3 }),
  );
}
