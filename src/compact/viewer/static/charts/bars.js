// Bars: how full a window is, what a prompt is made of, what became of messages.
import { h } from "../dom.js";
import { percent, short, whole } from "../format.js";
import { ACTIONS } from "../icons.js";
import { PARTS } from "./patterns.js";

const wide = (part, all) => ({ width: `${all ? Math.min(100, (100 * part) / all) : 0}%` });

/** A meter with a notch at the trigger. */
export function meter(value, limit, trigger) {
  const isHigh = trigger && value >= trigger;
  return h(
    "span",
    {
      class: `meter${isHigh ? " is-high" : ""}`,
      role: "meter",
      "aria-valuenow": value,
      "aria-valuemin": 0,
      "aria-valuemax": limit || value,
      "aria-label": `${whole(value)} of ${whole(limit)} tokens`,
    },
    h("span", { class: "meter-fill", style: wide(value, limit) }),
    trigger && limit ? h("span", { class: "meter-notch", style: { left: `${(100 * trigger) / limit}%` } }) : null,
  );
}

/** Before over after, to scale. */
export function beforeAfter(before, after) {
  const most = Math.max(before, after, 1);
  return h(
    "div",
    { class: "ba", role: "img", "aria-label": `${whole(before)} tokens before, ${whole(after)} after` },
    h("div", { class: "ba-row" }, h("span", { class: "ba-bar before", style: wide(before, most) })),
    h("div", { class: "ba-row" }, h("span", { class: "ba-bar after", style: wide(after, most) })),
  );
}

/** How many messages each action took, as one bar. */
export function actionBar(actions) {
  const given = Object.keys(ACTIONS).filter((key) => actions[key]);
  const all = given.reduce((sum, key) => sum + actions[key], 0);
  const label = given.map((key) => `${actions[key]} ${ACTIONS[key].word}`).join(", ") || "nothing changed";
  return h(
    "span",
    { class: "action-bar", role: "img", "aria-label": label, title: label },
    given.map((key) => h("span", { class: `seg act-${key}`, style: wide(actions[key], all) })),
  );
}

/** A prompt by its parts. */
export function partBar(parts, limit) {
  const given = PARTS.filter(({ key }) => parts?.[key]);
  const used = given.reduce((sum, { key }) => sum + parts[key], 0);
  const all = Math.max(limit || 0, used, 1);
  const label = given.map(({ key, name }) => `${name} ${short(parts[key])} (${percent(parts[key], all)})`).join(", ");
  return h(
    "div",
    { class: "part-bar", role: "img", "aria-label": label },
    given.map(({ key, name }) =>
      h("span", {
        class: `part-seg part-bg-${key}`,
        style: wide(parts[key], all),
        title: `${name}: ${whole(parts[key])} tokens`,
      }),
    ),
  );
}
