// One trace: the tree of its spans with duration bars, and an inspector.
import { debounce, h, isNarrow, replace } from "../base/dom.js";
import { count, duration } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visibleText, visible } from "../base/text.js";
import { get, segment } from "../data/api.js";
import { ArrayRows } from "../data/rows.js";
import { to } from "../router.js";
import { closeDrawer, openDrawer } from "../widgets/drawer.js";
import { empty, loading } from "../widgets/states.js";
import { VirtualList } from "../widgets/virtual_list.js";
import { Inspector } from "./inspector.js";
import { extent, millis, rowsOf, stateOf } from "./span_tree.js";

const ROW_PX = 34;
// As many as the server keeps of all traces.
const MAX_SPANS = 10_000;

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

function spanRow(toggle) {
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

/** Make a link to each compaction that a trace tells of. */
function compactionLinks(session, spans) {
  const made = spans.filter((span) => `${span.kind} ${span.name}`.includes("completed") && span.data?.plan_version > 0);
  const versions = [...new Set(made.map((span) => span.data.plan_version))];
  return versions.map((version) =>
    h("a", { class: "btn", href: to(["s", session, "p", version]) }, icon("layers"), `Compaction v${version}`),
  );
}

class TracePage {
  constructor(ctx, id, trace) {
    Object.assign(this, { ctx, id, trace });
    this.closed = new Set();
    this.drawSoon = debounce(() => this.draw(), 250);
    this.reloadSoon = debounce(() => this.reload(), 250);
    this.rows = new ArrayRows((row) => row.span.span_id);
    this.inspector = new Inspector();
    this.title = h("div", { class: "page-head" });
    this.list = new VirtualList({
      rows: this.rows,
      row: spanRow((span) => this.toggle(span)),
      height: () => ROW_PX,
      label: "Spans",
      role: "tree",
      scroller: isNarrow() ? ctx.main : null,
      onActive: (row) => this.inspector.show(row.span),
      onOpen: (row) => this.open(row),
      onKey: (event) => handleFoldKey(event, this.rows.get(this.list.active), this.closed, (span) => this.toggle(span)),
    });
  }

  toggle(span) {
    if (!this.closed.delete(span)) this.closed.add(span);
    this.rows.set(rowsOf(this.trace.spans, this.closed));
  }

  /** Show a span; where there is no room beside the tree, in a drawer. */
  open(row) {
    this.inspector.show(row.span);
    if (isNarrow()) openDrawer({ title: "Span", body: [this.inspector.el] });
  }

  head() {
    const { name, spans, sessions } = this.trace;
    const errors = spans.filter((span) => span.status === "error").length;
    const [from, until] = extent(spans);
    return [
      h("h1", null, visible(name || "Trace")),
      h("span", { class: "count mono clip" }, visibleText(this.id)),
      h("span", { class: "grow" }),
      errors ? h("span", { class: "badge is-error" }, icon("error"), count(errors, "error")) : null,
      h("span", { class: "count" }, `${count(spans.length, "span")} · ${duration(until - from)}`),
      sessions?.length ? compactionLinks(sessions[0], spans) : null,
      sessions?.length ? h("a", { class: "btn", href: to(["s", sessions[0]]) }, "Session", icon("arrow")) : null,
    ];
  }

  draw() {
    replace(this.title, this.head());
    this.rows.set(rowsOf(this.trace.spans, this.closed));
    const selected = this.trace.spans.find((span) => span.span_id === this.inspector.span?.span_id);
    if (selected) this.inspector.show(selected);
  }

  start() {
    const columns = ["Span", "Time", "Took"].map((text) => h("span", null, text));
    const tree = h(
      "section",
      { class: "card flush", "aria-label": "Span tree" },
      h("div", { class: "span-heads", "aria-hidden": "true" }, columns),
      this.list.el,
    );
    const emptyNote = this.trace.spans.length
      ? null
      : empty({ title: "No spans yet", text: "They appear as they arrive." });
    const split = h("div", { class: "trace-split" }, tree, isNarrow() ? null : this.inspector.el);
    replace(this.ctx.main, h("div", { class: "page trace-page" }, this.title, emptyNote, split));
    this.draw();
    this.ctx.onLeave(() => {
      this.drawSoon.cancel();
      this.reloadSoon.cancel();
      this.list.destroy();
      closeDrawer();
    });
  }

  /** Take an update: it contains the whole span, so nothing has to be requested. */
  update(event) {
    if (event.type === "refresh") return this.reloadSoon();
    if ((event.span ?? event.trace)?.trace_id !== this.id) return;
    if (event.span) putSpan(this.trace, event.span);
    else this.trace = { ...event.trace, spans: this.trace.spans };
    this.drawSoon();
  }

  async reload() {
    const read = await readTrace(this.ctx, this.id).catch(() => null); // the banner shows the failure
    if (!read) return;
    // Spans that came after the response was made are not in it.
    const newest = Math.max(0, ...read.spans.map((span) => span.received_at));
    const later = this.trace.spans.filter((span) => span.received_at > newest);
    this.trace = read;
    for (const span of later) putSpan(read, span);
    this.draw();
  }
}

/** Add a span to a trace, or replace its older state. */
function putSpan(trace, span) {
  const at = trace.spans.findIndex((known) => known.span_id === span.span_id);
  if (at < 0) trace.spans.push(span);
  else if (trace.spans[at].received_at <= span.received_at) trace.spans[at] = span;
  if (trace.spans.length > MAX_SPANS) trace.spans.shift();
  const session = span.data?.session_id;
  if (session && typeof session === "string" && !trace.sessions?.length) trace.sessions = [session];
}

const readTrace = (ctx, id) => get(`/api/traces/${segment(id)}`, {}, ctx.signal);

export async function traceView(ctx, { trace: id, params }) {
  ctx.crumbs([{ text: "Traces", href: "#/traces" }, { text: id }], "traces");
  replace(ctx.main, h("div", { class: "page" }, loading(9)));
  const waiting = [];
  let page = null;
  ctx.onLive((event) => (page ? page.update(event) : waiting.push(event)));
  page = new TracePage(ctx, id, await readTrace(ctx, id));
  page.start();
  waiting.forEach((event) => page.update(event));
  const wanted = params.span ? page.rows.find(params.span) : 0;
  if (!isNarrow()) page.list.select(Math.max(0, wanted), { show: Boolean(params.span) });
  return { onKey: (event) => (event.key === "Escape" && closeDrawer()) || page.list.key(event) };
}

/** Fold and unfold a span with the arrow keys. */
function handleFoldKey(event, row, closed, toggle) {
  if (!row?.children) return false;
  const isClosed = closed.has(row.span.span_id);
  if ((event.key === "ArrowLeft" && !isClosed) || (event.key === "ArrowRight" && isClosed)) {
    toggle(row.span.span_id);
    return true;
  }
  return false;
}
