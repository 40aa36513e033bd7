// A row of the tree of spans, and which spans a filter lets through.
import { h, isNarrow } from "../base/dom.js";
import { duration } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visible } from "../base/text.js";
import { millis, stateOf } from "./span_tree.js";

function durationBar(span, { from, until }) {
  const start = millis(span.started_at);
  if (!Number.isFinite(start)) return h("span", { class: "track" });
  const end = millis(span.ended_at);
  const all = until - from;
  const left = (100 * (start - from)) / all;
  const width = (100 * ((Number.isFinite(end) ? end : until) - start)) / all;
  return h(
    "span",
    { class: "track" },
    h("span", { class: `span-bar is-${stateOf(span)}`, style: { left: `${left}%`, width: `max(3px, ${width}%)` } }),
  );
}

/** Return the row of a span; `toggle` folds it. */
export function spanRow(toggle) {
  return ({ span, depth, range, children, isClosed }) => {
    const state = stateOf(span);
    const time = span.ended_at ? duration(millis(span.ended_at) - millis(span.started_at)) : "open";
    const fold = children
      ? h(
          "span",
          {
            class: `fold-mark${isClosed ? " is-closed" : ""}`,
            on: {
              click: (event) => {
                event.stopPropagation();
                toggle(span.span_id);
              },
            },
          },
          icon("down"),
        )
      : h("span", { class: "fold-mark" });
    return {
      class: `span-row is-${state}`,
      props: { "aria-level": depth + 1, "aria-expanded": children ? String(!isClosed) : undefined },
      content: [
        h(
          "span",
          { class: "span-name", style: { "padding-left": `${Math.min(depth, 12) * (isNarrow() ? 9 : 16)}px` } },
          fold,
          h("span", { class: `state-dot is-${state}`, role: "img", "aria-label": state }),
          h("span", { class: "clip" }, visible(span.name || span.kind || "span")),
          span.kind && span.kind !== span.name ? h("span", { class: "kind clip" }, visible(span.kind)) : null,
        ),
        durationBar(span, range),
        h("span", { class: "num dim took" }, time),
      ],
    };
  };
}

/** Return True for a span that a filter lets through. */
export function fits(span, { state, kind, q }) {
  if (state === "errors" && stateOf(span) !== "error") return false;
  if (kind && (span.kind || "span") !== kind) return false;
  return !q || JSON.stringify(span).toLowerCase().includes(q.toLowerCase());
}
