// One trace: the tree of its spans with duration bars, and an inspector.
import { get, part } from "../api.js";
import { debounce, h, isNarrow, replace } from "../dom.js";
import { closeDrawer, openDrawer } from "../drawer.js";
import { count, duration } from "../format.js";
import { icon } from "../icons.js";
import { to } from "../router.js";
import { ArraySource } from "../source.js";
import { empty, loading } from "../states.js";
import { plain, shown } from "../text.js";
import { VirtualList } from "../virtual.js";
import { Inspector } from "./inspector.js";
import { extent, millis, rowsOf, stateOf } from "./tree.js";

const ROW_PX = 34;
// As many as the server keeps of all traces.
const MOST_SPANS = 10_000;

function bar(span, { from, until }) {
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

function spanRow(toggle) {
  return ({ span, depth, range, children, isClosed }) => {
    const state = stateOf(span);
    const took = span.ended_at ? duration(millis(span.ended_at) - millis(span.started_at)) : "open";
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
          h("span", { class: "clip" }, shown(span.name || span.kind || "span")),
          span.kind && span.kind !== span.name ? h("span", { class: "kind clip" }, shown(span.kind)) : null,
        ),
        bar(span, range),
        h("span", { class: "num dim took" }, took),
      ],
    };
  };
}

class TracePage {
  constructor(ctx, id, trace) {
    Object.assign(this, { ctx, id, trace });
    this.closed = new Set();
    this.drawSoon = debounce(() => this.draw(), 250);
    this.readSoon = debounce(() => this.again(), 250);
    this.source = new ArraySource((row) => row.span.span_id);
    this.inspector = new Inspector();
    this.title = h("div", { class: "page-head" });
    this.list = new VirtualList({
      source: this.source,
      row: spanRow((span) => this.toggle(span)),
      height: () => ROW_PX,
      label: "Spans",
      role: "tree",
      scroller: isNarrow() ? ctx.main : null,
      onActive: (row) => this.inspector.show(row.span),
      onOpen: (row) => this.open(row),
      extra: (event) => fold(event, this.source.get(this.list.active), this.closed, (span) => this.toggle(span)),
    });
  }

  toggle(span) {
    if (!this.closed.delete(span)) this.closed.add(span);
    this.source.set(rowsOf(this.trace.spans, this.closed));
  }

  /** Where there is no room beside the tree, the inspector comes as a sheet. */
  open(row) {
    this.inspector.show(row.span);
    if (isNarrow()) openDrawer({ title: "Span", body: [this.inspector.el] });
  }

  head() {
    const { name, spans, sessions } = this.trace;
    const errors = spans.filter((span) => span.status === "error").length;
    const [from, until] = extent(spans);
    return [
      h("h1", null, shown(name || "Trace")),
      h("span", { class: "count mono clip" }, plain(this.id)),
      h("span", { class: "grow" }),
      errors ? h("span", { class: "badge is-error" }, icon("error"), count(errors, "error")) : null,
      h("span", { class: "count" }, `${count(spans.length, "span")} · ${duration(until - from)}`),
      sessions?.length ? h("a", { class: "btn", href: to(["s", sessions[0]]) }, "Session", icon("arrow")) : null,
    ];
  }

  draw() {
    replace(this.title, this.head());
    this.source.set(rowsOf(this.trace.spans, this.closed));
    const seen = this.trace.spans.find((span) => span.span_id === this.inspector.span?.span_id);
    if (seen) this.inspector.show(seen);
  }

  start() {
    const heads = ["Span", "Time", "Took"].map((text) => h("span", null, text));
    const tree = h(
      "section",
      { class: "card flush", "aria-label": "Span tree" },
      h("div", { class: "span-heads", "aria-hidden": "true" }, heads),
      this.list.el,
    );
    const none = this.trace.spans.length ? null : empty({ title: "No spans yet", text: "They appear as they arrive." });
    const split = h("div", { class: "trace-split" }, tree, isNarrow() ? null : this.inspector.el);
    replace(this.ctx.main, h("div", { class: "page trace-page" }, this.title, none, split));
    this.draw();
    this.ctx.onEnd(() => {
      this.drawSoon.cancel();
      this.readSoon.cancel();
      this.list.destroy();
      closeDrawer();
    });
  }

  /** News come with all there is to know of a span, so that nothing has to be asked for. */
  take(event) {
    if (event.type === "refresh") return this.readSoon();
    if ((event.span ?? event.trace)?.trace_id !== this.id) return;
    if (event.span) putSpan(this.trace, event.span);
    else this.trace = { ...event.trace, spans: this.trace.spans };
    this.drawSoon();
  }

  async again() {
    const read = await readTrace(this.ctx, this.id).catch(() => null); // a failure shows in the banner
    if (!read) return;
    // What came while the answer was on its way is not in it.
    const newest = Math.max(0, ...read.spans.map((span) => span.received_at));
    const later = this.trace.spans.filter((span) => span.received_at > newest);
    this.trace = read;
    for (const span of later) putSpan(read, span);
    this.draw();
  }
}

/** Have a span as it is now in a trace. */
function putSpan(trace, span) {
  const at = trace.spans.findIndex((known) => known.span_id === span.span_id);
  if (at < 0) trace.spans.push(span);
  else if (trace.spans[at].received_at <= span.received_at) trace.spans[at] = span;
  if (trace.spans.length > MOST_SPANS) trace.spans.shift();
  const session = span.data?.session_id;
  if (session && typeof session === "string" && !trace.sessions?.length) trace.sessions = [session];
}

const readTrace = (ctx, id) => get(`/api/traces/${part(id)}`, {}, ctx.signal);

export async function traceView(ctx, { trace: id, params }) {
  ctx.crumbs([{ text: "Traces", href: "#/traces" }, { text: id }], "traces");
  replace(ctx.main, h("div", { class: "page" }, loading(9)));
  const early = [];
  let page = null;
  ctx.onLive((event) => (page ? page.take(event) : early.push(event)));
  page = new TracePage(ctx, id, await readTrace(ctx, id));
  page.start();
  early.forEach((event) => page.take(event));
  const wanted = params.span ? page.source.find(params.span) : 0;
  if (!isNarrow()) page.list.select(Math.max(0, wanted), { show: Boolean(params.span) });
  return { keys: (event) => (event.key === "Escape" && closeDrawer()) || page.list.key(event) };
}

function fold(event, row, closed, toggle) {
  if (!row?.children) return false;
  const isClosed = closed.has(row.span.span_id);
  if ((event.key === "ArrowLeft" && !isClosed) || (event.key === "ArrowRight" && isClosed)) {
    toggle(row.span.span_id);
    return true;
  }
  return false;
}
