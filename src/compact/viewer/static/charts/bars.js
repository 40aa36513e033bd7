// Bars: how full a window is, what a prompt is made of, what became of messages.
import { h, s } from "../base/dom.js";
import { count, percent, short, whole } from "../base/format.js";
import { ACTIONS } from "../base/icons.js";
import { occurringParts, partShapes } from "./parts.js";

const share = (part, all) => `${all ? Math.min(100, (100 * part) / all) : 0}%`;

/** Make a meter with a notch at the trigger. */
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
    h("span", { class: "meter-fill", style: { width: share(value, limit) } }),
    trigger && limit ? h("span", { class: "meter-notch", style: { left: `${(100 * trigger) / limit}%` } }) : null,
  );
}

/** Make two bars to scale: before over after. */
export function beforeAfter(before, after) {
  const most = Math.max(before, after, 1);
  const row = (name, tokens) =>
    h("div", { class: "ba-row" }, h("span", { class: `ba-bar ${name}`, style: { width: share(tokens, most) } }));
  return h(
    "div",
    { class: "ba", role: "img", "aria-label": `${count(before, "token")} before, ${whole(after)} after` },
    row("before", before),
    row("after", after),
  );
}

/** Make one bar of how many messages each action took. */
export function actionBar(actions) {
  const taken = Object.keys(ACTIONS).filter((key) => actions[key]);
  const all = taken.reduce((sum, key) => sum + actions[key], 0);
  const label = taken.map((key) => `${actions[key]} ${ACTIONS[key].label}`).join(", ") || "nothing changed";
  return h(
    "span",
    { class: "action-bar", role: "img", "aria-label": label, title: label },
    taken.map((key) => h("span", { class: `seg act-${key}`, style: { width: share(actions[key], all) } })),
  );
}

/** Make one bar of a prompt by its parts, to the scale of the window. */
export function partBar(parts, limit) {
  const occurring = occurringParts([parts]);
  const used = occurring.reduce((sum, { key }) => sum + parts[key], 0);
  const all = Math.max(limit || 0, used, 1);
  const label = occurring
    .map(({ key, name }) => `${name} ${short(parts[key])} (${percent(parts[key], all)})`)
    .join(", ");
  let start = 0;
  const segments = occurring.map(({ key, name }) => {
    const props = { x: share(start, all), width: share(parts[key], all), height: "100%" };
    start += parts[key];
    return s("g", null, s("title", null, `${name}: ${count(parts[key], "token")}`), partShapes("rect", key, props));
  });
  return s("svg", { class: "part-bar", role: "img", "aria-label": label }, segments);
}
