// Icons, 16 by 16. Each action has a shape of its own, so that colour is never the only difference.
import { h, s } from "./dom.js";

const PATHS = {
  include: ["M3 8.5 6.5 12 13 4.5"],
  clear: ["M3 8h2M7 8h2M11 8h2"],
  summarize: ["M3 4h10M3 8h7M3 12h4"],
  externalize: ["M6 4H3.5v8.5H12V10M9 3.5h3.5V7M12.2 3.8 7.5 8.5"],
  drop: ["M4 4l8 8M12 4l-8 8"],
  search: ["M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5 14 14"],
  sun: ["M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1"],
  moon: ["M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7Z"],
  pause: ["M5.5 3.5v9M10.5 3.5v9"],
  play: ["M5 3.5v9l7-4.5Z"],
  undo: ["M5.5 3 2.5 6l3 3M2.5 6h7a4 4 0 0 1 0 8H6"],
  plus: ["M8 3v10M3 8h10"],
  minus: ["M3 8h10"],
  fit: ["M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10"],
  left: ["M10 3 5 8l5 5"],
  right: ["M6 3l5 5-5 5"],
  down: ["M3 6l5 5 5-5"],
  warn: ["M8 2 1.5 13.5h13ZM8 6.5v3.5M8 12v.1"],
  error: ["M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13ZM8 4.5v4.5M8 11.2v.1"],
  eye: ["M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z"],
  arrow: ["M3 8h10M9 4l4 4-4 4"],
  check: ["M3 8.5 6.5 12 13 4.5"],
  question: ["M5.5 6a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.8-1.1 1.8M8 12.7v.1"],
  copy: ["M5.5 5.5h8v8h-8ZM3.5 10.5h-1v-8h8v1"],
  download: ["M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11"],
  compare: ["M2.5 3h4.5v10H2.5ZM9 3h4.5v10H9Z"],
  layers: ["M8 2 2 5.5 8 9l6-3.5ZM2 9.5 8 13l6-3.5"],
};

export function icon(name, label = "") {
  const props = {
    viewBox: "0 0 16 16",
    class: `icon icon-${name}`,
    "aria-hidden": label ? undefined : "true",
    role: label ? "img" : undefined,
    "aria-label": label || undefined,
  };
  return s(
    "svg",
    props,
    (PATHS[name] ?? []).map((d) => s("path", { d })),
  );
}

/** What a plan does with a message. */
export const ACTIONS = {
  include: { label: "kept", meaning: "in the prompt, word for word" },
  clear: { label: "cleared", meaning: "a stub stands for it" },
  summarize: { label: "summarised", meaning: "the summary stands for it" },
  externalize: { label: "externalised", meaning: "an artifact holds it, a stub stands for it" },
  drop: { label: "dropped", meaning: "not in the prompt" },
};

export function actionChip(action) {
  const known = ACTIONS[action] ?? { label: action, meaning: "" };
  return h(
    "span",
    { class: `chip act act-${action in ACTIONS ? action : "other"}`, title: known.meaning },
    icon(action),
    known.label,
  );
}

export function brand() {
  return s(
    "svg",
    { viewBox: "0 0 24 24", class: "brand-mark", "aria-hidden": "true" },
    s("path", { d: "M5 6h14", class: "b1" }),
    s("path", { d: "M7.5 12h9", class: "b2" }),
    s("path", { d: "M10 18h4", class: "b3" }),
  );
}
