// What the timeline is drawn with: areas, grid, thresholds.
import { s } from "../base/dom.js";
import { short } from "../base/format.js";
import { layersOf } from "./contents.js";
import { FREE, partShapes, PARTS, patternFill } from "./parts.js";
import { ticks } from "./scale.js";

const round = (n) => Math.round(n * 10) / 10;

/** Return the outline of one area, call by call: forward along the top, back along the bottom. */
function outline(frame, first, tops, bottoms) {
  const forward = tops.map(
    (top, i) => `${round(frame.x(first + i))},${round(frame.y(top))}H${round(frame.x(first + i + 1))}`,
  );
  const back = bottoms
    .map((bottom, i) => `${round(frame.x(first + i + 1))},${round(frame.y(bottom))}H${round(frame.x(first + i))}`)
    .reverse();
  return `M${forward.join("L")}L${back.join("L")}Z`;
}

/** Draw the parts of each prompt stacked on each other; a hidden part takes no room. */
export function areas({ frame, calls, first, hidden, limit }) {
  let bottoms = calls.map(() => 0);
  const drawn = [];
  for (const { key } of PARTS) {
    if (hidden.has(key) || !calls.some((call) => call.parts?.[key])) continue;
    const group = s("g", { class: `layers-${key}` });
    for (const { shade, tokens } of layersOf(calls, key)) {
      const tops = bottoms.map((bottom, i) => bottom + tokens(calls[i]));
      const d = outline(frame, first, tops, bottoms);
      group.append(s("g", { class: `shade-${shade}` }, partShapes("path", key, { d })));
      bottoms = tops;
    }
    drawn.push(group);
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
        fill: patternFill(FREE.key),
        class: "free",
      }),
    );
  return drawn;
}

/** Draw lines at round numbers of tokens, and the numbers of some calls. */
export function grid(frame, most, range, calls) {
  const { margin, width, height } = frame;
  const lines = ticks(most, height < 240 ? 3 : 4).map((n) => [
    s("line", { x1: margin.left, x2: width - margin.right, y1: frame.y(n), y2: frame.y(n), class: "grid-line" }),
    s("text", { x: margin.left - 8, y: frame.y(n) + 4, class: "axis end" }, short(n)),
  ]);
  const every = Math.max(1, ticks(range.size, Math.max(3, Math.floor(frame.inner.width / 110)))[1] ?? 1);
  const marks = [];
  for (let index = range.from; index < range.to; index += 1) {
    if (index % Math.ceil(every) !== 0) continue;
    marks.push(
      s("text", { x: frame.x(index) + frame.slot / 2, y: height - 8, class: "axis mid" }, `#${calls[index].number}`),
    );
  }
  return [lines, marks];
}

const LIMITS = ["window", "ceiling", "trigger", "prefetch", "target"];

/** Draw the limits as lines, each named at its right end; names that would overlap are moved apart. */
export function thresholds(frame, limits, most) {
  const inRange = LIMITS.filter((key) => limits?.[key] && limits[key] <= most).sort((a, b) => limits[b] - limits[a]);
  let last = -Infinity;
  const inside = frame.margin.right < 40;
  return inRange.map((key) => {
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
        inside && key === "ceiling" ? "" : `${key} ${short(limits[key])}`,
      ),
    );
  });
}
