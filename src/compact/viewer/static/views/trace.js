// One trace: the tree of its spans with duration bars, and an inspector.
import { debounce, h, isNarrow, replace } from "../base/dom.js";
import { count, duration, whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visibleText, visible } from "../base/text.js";
import { get, segment } from "../data/api.js";
import { ArrayRows } from "../data/rows.js";
import { rewrite, to } from "../router.js";
import { copyButton } from "../widgets/copy.js";
import { closeDrawer, openDrawer } from "../widgets/drawer.js";
import { choice, searchField } from "../widgets/filters.js";
import { empty, loading } from "../widgets/states.js";
import { VirtualList } from "../widgets/virtual_list.js";
import { Inspector } from "./inspector.js";
import { fits, spanRow } from "./span_row.js";
import { extent, rowsOf, stateOf } from "./span_tree.js";
import { sessionTabs } from "./tabs.js";

const ROW_PX = 34;
// As many as the page can show at once; earlier ones are read when they are asked for.
const MAX_SPANS = 10_000;
const STATES = [
  ["", "All spans"],
  ["errors", "Errors"],
];

class TracePage {
  constructor(ctx, id, trace, { session = "", params = {} } = {}) {
    Object.assign(this, { ctx, id, trace, session });
    this.filter = { state: params.state === "errors" ? "errors" : "", kind: params.kind ?? "", q: params.q ?? "" };
    this.kinds = choice("Kind of span", this.filter.kind, [["", "Every kind"]], (kind) => this.change({ kind }));
    this.found = h("span", { class: "count", role: "status" });
    this.nextError = h(
      "button",
      { class: "btn", type: "button", title: "Next error (n)", on: { click: () => this.showNextError() } },
      icon("error"),
      "Next error",
    );
    this.earlier = h(
      "button",
      { class: "btn more", type: "button", on: { click: () => this.loadEarlier() } },
      "Load earlier spans",
    );
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
      onActive: (row) => this.select(row.span),
      onOpen: (row) => this.open(row),
      onKey: (event) => handleFoldKey(event, this.rows.get(this.list.active), this.closed, (span) => this.toggle(span)),
    });
  }

  toggle(span) {
    if (!this.closed.delete(span)) this.closed.add(span);
    this.drawRows();
  }

  get isFiltered() {
    return Object.values(this.filter).some(Boolean);
  }

  drawRows() {
    const spans = this.isFiltered ? this.trace.spans.filter((span) => fits(span, this.filter)) : this.trace.spans;
    this.rows.set(rowsOf(spans, this.closed));
    replace(this.found, this.isFiltered ? `${count(spans.length, "span")} of ${whole(this.trace.spans.length)}` : null);
  }

  change(filter) {
    Object.assign(this.filter, filter);
    this.rewriteAddress();
    this.drawRows();
  }

  /** Write the filters and the span into the address, which then leads here again. */
  rewriteAddress() {
    const path = this.session ? ["s", this.session, "traces"] : ["t", this.id];
    rewrite(path, { ...this.filter, span: this.inspector.span?.span_id ?? "" });
  }

  select(span) {
    this.inspector.show(span);
    this.rewriteAddress();
  }

  /** Show the next span with an error after the selected one; after the last comes the first. */
  showNextError() {
    const rows = Array.from({ length: this.rows.total }, (_, index) => this.rows.get(index));
    const errors = rows.flatMap(({ span }, index) => (stateOf(span) === "error" ? [index] : []));
    if (!errors.length) {
      // It may be folded away, or not fit the filter.
      if (!this.trace.spans.some((span) => stateOf(span) === "error") || this.filter.state) return true;
      this.closed.clear();
      this.change({ state: "errors", kind: "", q: "" });
      this.stateField.draw("errors", STATES);
      return this.showNextError();
    }
    const next = errors.find((index) => index > this.list.active) ?? errors[0];
    this.list.select(next);
    if (isNarrow()) this.open(this.rows.get(next));
    return true;
  }

  async loadEarlier() {
    this.earlier.disabled = true;
    const query = { before: this.trace.earlier };
    const page = await get(`/api/traces/${segment(this.id)}`, query, this.ctx.signal).catch(() => null);
    this.earlier.disabled = false;
    if (!page) return; // the banner shows the failure
    this.trace.spans = [...page.spans, ...this.trace.spans];
    this.trace.earlier = page.earlier;
    this.draw();
  }

  toolbar() {
    this.stateField = choice("Which spans", this.filter.state, STATES, (state) => this.change({ state }));
    return h(
      "div",
      { class: "toolbar" },
      searchField("Search the spans", this.filter.q, (q) => this.change({ q })),
      this.stateField.el,
      this.kinds.el,
      this.nextError,
      this.found,
    );
  }

  /** Offer the kinds of span that there are. */
  drawKinds() {
    const counts = new Map();
    for (const span of this.trace.spans) counts.set(span.kind || "span", (counts.get(span.kind || "span") ?? 0) + 1);
    const kinds = [...counts].sort().map(([kind, n]) => [kind, kind, n]);
    this.kinds.draw(this.filter.kind, [["", "Every kind"], ...kinds]);
  }

  /** Show a span; where there is no room beside the tree, in a drawer. */
  open(row) {
    this.select(row.span);
    if (isNarrow()) openDrawer({ title: "Span", body: [this.inspector.el] });
  }

  head() {
    const { name, spans, sessions } = this.trace;
    const errors = spans.filter((span) => span.status === "error").length;
    const [from, until] = extent(spans);
    return [
      h("h1", { class: this.session ? "mono" : "" }, visible(name || "Trace")),
      name === this.id ? null : h("span", { class: "count mono clip" }, visibleText(this.id)),
      copyButton(this.id, { label: "", name: "Copy the trace's id" }),
      h("span", { class: "grow" }),
      errors ? h("span", { class: "badge is-error" }, icon("error"), count(errors, "error")) : null,
      h("span", { class: "count" }, `${spanCount(this.trace)} · ${duration(until - from)}`),
      sessions?.length && !this.session ? h("a", { class: "btn", href: to(["s", sessions[0]]) }, "Session", icon("arrow")) : null,
    ];
  }

  draw() {
    replace(this.title, this.head());
    this.earlier.hidden = !this.trace.earlier;
    this.nextError.disabled = !this.trace.spans.some((span) => stateOf(span) === "error");
    this.drawKinds();
    this.drawRows();
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
    const tabs = this.session ? sessionTabs(this.session, "traces") : null;
    replace(
      this.ctx.main,
      h("div", { class: "page trace-page" }, this.title, tabs, this.toolbar(), this.earlier, emptyNote, split),
    );
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

/** Say how many spans are here, and how many there are if not all are. */
function spanCount({ spans, spans_total: total }) {
  return total > spans.length ? `${whole(spans.length)} of ${count(total, "span")}` : count(spans.length, "span");
}

/** Read a trace: its newest spans, or those around one that is not among them. */
async function readTrace(ctx, id, { span = "", before = "" } = {}) {
  const path = `/api/traces/${segment(id)}`;
  const trace = await get(path, {}, ctx.signal);
  if (!before || trace.spans.some(({ span_id: known }) => known === span)) return trace;
  return get(path, { before }, ctx.signal);
}

export async function traceView(ctx, { trace: id, session = "", params }) {
  // The traces of a session lead here with their own path.
  if (!session) ctx.crumbs([{ text: "Traces", href: "#/traces" }, { text: id }], "traces");
  replace(ctx.main, h("div", { class: "page" }, loading(9)));
  const waiting = [];
  let page = null;
  ctx.onLive((event) => (page ? page.update(event) : waiting.push(event)));
  page = new TracePage(ctx, id, await readTrace(ctx, id, params), { session, params });
  page.start();
  waiting.forEach((event) => page.update(event));
  const wanted = params.span ? page.rows.find(params.span) : 0;
  if (!isNarrow()) page.list.select(Math.max(0, wanted), { show: Boolean(params.span) });
  const onKey = (event) =>
    (event.key === "Escape" && closeDrawer()) || (event.key === "n" && page.showNextError()) || page.list.key(event);
  return { onKey };
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
