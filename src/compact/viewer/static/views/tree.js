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

/** Rows of the tree; spans that are each other's parents, in a ring, are shown at the top rather than not at all. */
export function rowsOf(spans, closed) {
  const under = parents(spans);
  const rows = [];
  const seen = new Set();
  const walk = (span, depth) => {
    if (seen.has(span.span_id)) return;
    seen.add(span.span_id);
    const children = under.get(span.span_id) ?? [];
    const isClosed = closed.has(span.span_id);
    rows.push({ span, depth, children: children.length, isClosed });
    if (isClosed) children.forEach((child) => skip(child));
    else children.forEach((child) => walk(child, depth + 1));
  };
  const skip = (span) => {
    if (seen.has(span.span_id)) return;
    seen.add(span.span_id);
    (under.get(span.span_id) ?? []).forEach(skip);
  };
  (under.get(null) ?? []).forEach((span) => walk(span, 0));
  spans.forEach((span) => walk(span, 0));
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
