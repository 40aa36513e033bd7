// Spans as a tree in the order they began, flattened to the rows that are unfolded.

export const millis = (time) => (typeof time === "number" ? time * 1000 : time ? Date.parse(time) : NaN);

export function stateOf(span) {
  if (span.status === "error") return "error";
  return span.ended_at ? "ok" : "open";
}

function childrenByParent(spans) {
  const known = new Set(spans.map((span) => span.span_id));
  const children = new Map();
  for (const span of spans) {
    const parent = span.parent_id !== span.span_id && known.has(span.parent_id) ? span.parent_id : null;
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(span);
  }
  const start = (span) => millis(span.started_at) || millis(span.received_at) || 0;
  for (const siblings of children.values()) siblings.sort((a, b) => start(a) - start(b));
  return children;
}

/** Widen a range of milliseconds so that a span is in it. */
function widen(range, span) {
  const start = millis(span.started_at);
  if (!Number.isFinite(start)) return;
  const end = millis(span.ended_at);
  range.from = Math.min(range.from, start);
  range.until = Math.max(range.until, start + 1, Number.isFinite(end) ? end : start);
}

/**
 * Return the rows of the tree. Spans that are each other's parents, in a cycle, are shown at the top.
 * Each row has the time range of the operation it belongs to: on the scale of a whole session, which takes hours,
 * an operation of milliseconds would be invisible.
 */
export function rowsOf(spans, closed) {
  const childrenOf = childrenByParent(spans);
  const rows = [];
  const seen = new Set();
  const walk = (span, depth, range) => {
    if (seen.has(span.span_id)) return;
    seen.add(span.span_id);
    widen(range, span);
    const children = childrenOf.get(span.span_id) ?? [];
    const isClosed = closed.has(span.span_id);
    rows.push({ span, depth, range, children: children.length, isClosed });
    if (isClosed) children.forEach((child) => skip(child, range));
    else children.forEach((child) => walk(child, depth + 1, range));
  };
  const skip = (span, range) => {
    if (seen.has(span.span_id)) return;
    seen.add(span.span_id);
    widen(range, span);
    (childrenOf.get(span.span_id) ?? []).forEach((child) => skip(child, range));
  };
  const root = (span) => walk(span, 0, { from: Infinity, until: -Infinity });
  (childrenOf.get(null) ?? []).forEach(root);
  spans.forEach(root);
  return rows;
}

/** Return the first start and the last end of spans, in milliseconds. */
export function extent(spans) {
  const starts = spans.map((span) => millis(span.started_at)).filter(Number.isFinite);
  const ends = spans.map((span) => millis(span.ended_at ?? span.started_at)).filter(Number.isFinite);
  if (!starts.length) return [0, 1];
  const from = Math.min(...starts);
  return [from, Math.max(from + 1, ...ends)];
}
