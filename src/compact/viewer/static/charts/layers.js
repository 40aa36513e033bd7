// What the timeline is drawn of: areas, grid, thresholds.
import { s } from "../dom.js";
import { short } from "../format.js";
import { PARTS } from "./patterns.js";
import { ticks } from "./scale.js";

const round = (n) => Math.round(n * 10) / 10;

/** The outline of one layer, call by call: forward along the top, back along the bottom. */
function outline(frame, first, tops, bottoms) {
  const there = tops.map(
    (top, i) => `${round(frame.x(first + i))},${round(frame.y(top))}H${round(frame.x(first + i + 1))}`,
  );
  const back = bottoms
    .map((bottom, i) => `${round(frame.x(first + i + 1))},${round(frame.y(bottom))}H${round(frame.x(first + i))}`)
    .reverse();
  return `M${there.join("L")}L${back.join("L")}Z`;
}

/** Tiers stacked on each other; what is hidden takes no room. */
export function areas({ frame, calls, first, hidden, limit, url }) {
  let bottoms = calls.map(() => 0);
  const drawn = [];
  for (const { key } of PARTS) {
    if (hidden.has(key) || !calls.some((call) => call.parts?.[key])) continue;
    const tops = bottoms.map((bottom, i) => bottom + (calls[i].parts?.[key] ?? 0));
    const d = outline(frame, first, tops, bottoms);
    drawn.push(s("path", { d, class: `part part-${key}` }));
    if (url(key)) drawn.push(s("path", { d, fill: url(key), class: "overlay" }));
    bottoms = tops;
  }
  if (limit)
    drawn.unshift(
      s("path", {
        d: outline(
          frame,
          first,
          bottoms.map((n) => Math.max(n, limit)),
          bottoms,
        ),
        fill: url("free"),
        class: "free",
      }),
    );
  return drawn;
}

export function grid(frame, most, sight, calls) {
  const { margin, width, height } = frame;
  const lines = ticks(most, height < 240 ? 3 : 4).map((n) => [
    s("line", { x1: margin.left, x2: width - margin.right, y1: frame.y(n), y2: frame.y(n), class: "grid-line" }),
    s("text", { x: margin.left - 8, y: frame.y(n) + 4, class: "axis end" }, short(n)),
  ]);
  const every = Math.max(1, ticks(sight.size, Math.max(3, Math.floor(frame.inner.width / 110)))[1] ?? 1);
  const marks = [];
  for (let index = sight.from; index < sight.to; index += 1) {
    if (index % Math.ceil(every) !== 0) continue;
    marks.push(
      s("text", { x: frame.x(index) + frame.slot / 2, y: height - 8, class: "axis mid" }, `#${calls[index].number}`),
    );
  }
  return [lines, marks];
}

const NAMES = { window: "window", ceiling: "ceiling", trigger: "trigger", prefetch: "prepare", target: "target" };

/** Limits as lines, each named at its right end; names that would touch make room for each other. */
export function thresholds(frame, limits, most) {
  const given = Object.keys(NAMES)
    .filter((key) => limits?.[key] && limits[key] <= most)
    .sort((a, b) => limits[b] - limits[a]);
  let last = -Infinity;
  const inside = frame.margin.right < 40;
  return given.map((key) => {
    const y = frame.y(limits[key]);
    const at = Math.max(y, last + 13);
    last = at;
    const x = inside ? frame.width - frame.margin.right - 4 : frame.width - frame.margin.right + 8;
    return s(
      "g",
      { class: `limit limit-${key}` },
      s("line", { x1: frame.margin.left, x2: frame.width - frame.margin.right, y1: y, y2: y, class: "under" }),
      s("line", { x1: frame.margin.left, x2: frame.width - frame.margin.right, y1: y, y2: y }),
      !inside && at !== y && s("path", { d: `M${frame.width - frame.margin.right},${y}L${x - 2},${at}` }),
      s(
        "text",
        { x, y: inside ? y - 4 : at + 4, class: inside ? "axis end halo" : "axis" },
        inside && key === "ceiling" ? "" : `${NAMES[key]} ${short(limits[key])}`,
      ),
    );
  });
}
