// A sparkline: the window over the last calls, in the size of a word.
import { s } from "../base/dom.js";
import { count, short } from "../base/format.js";

const WIDTH = 132;
const HEIGHT = 32;
const PAD = 2;

export function sparkline(values, { window: limit = 0, trigger = 0 } = {}) {
  const top = Math.max(limit || 0, ...values, 1);
  const y = (n) => HEIGHT - PAD - (n / top) * (HEIGHT - 2 * PAD);
  const step = (WIDTH - 2 * PAD) / Math.max(1, values.length - 1);
  const points = values.map((n, index) => [PAD + index * step, y(n)]);
  if (points.length === 1) points.push([WIDTH - PAD, points[0][1]]);
  const line = points.map(([x, at]) => `${x.toFixed(1)},${at.toFixed(1)}`).join("L");
  const label = values.length
    ? `Tokens of the last ${count(values.length, "call")}, now ${short(values.at(-1))}`
    : "No calls yet";
  return s(
    "svg",
    {
      class: "spark",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    trigger && s("line", { x1: 0, x2: WIDTH, y1: y(trigger), y2: y(trigger), class: "spark-trigger" }),
    values.length && s("path", { d: `M${line}L${points.at(-1)[0]},${HEIGHT}L${PAD},${HEIGHT}Z`, class: "spark-area" }),
    values.length && s("path", { d: `M${line}`, class: "spark-line" }),
    values.length && s("circle", { cx: points.at(-1)[0], cy: points.at(-1)[1], r: 2, class: "spark-dot" }),
  );
}
