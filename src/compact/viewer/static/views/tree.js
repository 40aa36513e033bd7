// Spans as a tree in the order they began, flattened to the rows that are open.

export const millis = (time) => (typeof time === "number" ? time * 1000 : time ? Date.parse(time) : NaN);

export function stateOf(span) {
  if (span.status === "error") return "error";
  return span.ended_at ? "ok" : "open";
}

function parents(spans) {
  const known = new Set(spans.map((span) => span.span_id));
  const under = new Map();
  for (const span of spans) {
    const parent = span.parent_id !== span.span_id && known.has(span.parent_id) ? span.parent_id : null;
    if (!under.has(parent)) under.set(parent, []);
    under.get(parent).push(span);
  }
  const begin = (span) => millis(span.started_at) || millis(span.received_at) || 0;
  for (const group of under.values()) group.sort((a, b) => begin(a) - begin(b));
  return under;
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
 * Rows of the tree; spans that are each other's parents, in a ring, are shown at the top rather than not at all.
 * Each row has the range of the operation it belongs to, from its first beginning to its last end: beside the hours
 * of a whole session, what takes milliseconds would not be seen.
 */
export function rowsOf(spans, closed) {
  const under = parents(spans);
  const rows = [];
  const seen = new Set();
  const walk = (span, depth, range) => {
    if (seen.has(span.span_id)) return;
    seen.add(span.span_id);
    widen(range, span);
    const children = under.get(span.span_id) ?? [];
    const isClosed = closed.has(span.span_id);
    rows.push({ span, depth, range, children: children.length, isClosed });
    if (isClosed) children.forEach((child) => skip(child, range));
    else children.forEach((child) => walk(child, depth + 1, range));
  };
  const skip = (span, range) => {
    if (seen.has(span.span_id)) return;
    seen.add(span.span_id);
    widen(range, span);
    (under.get(span.span_id) ?? []).forEach((child) => skip(child, range));
  };
  const root = (span) => walk(span, 0, { from: Infinity, until: -Infinity });
  (under.get(null) ?? []).forEach(root);
  spans.forEach(root);
  return rows;
}

/** From the first beginning to the last end, in milliseconds. */
export function extent(spans) {
  const starts = spans.map((span) => millis(span.started_at)).filter(Number.isFinite);
  const ends = spans.map((span) => millis(span.ended_at ?? span.started_at)).filter(Number.isFinite);
  if (!starts.length) return [0, 1];
  const from = Math.min(...starts);
  return [from, Math.max(from + 1, ...ends)];
}
