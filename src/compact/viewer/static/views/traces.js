// The traces that were received, newest first; of all sessions or of one.
import { debounce, h, isNarrow, replace } from "../base/dom.js";
import { ago, count, duration, dateTime } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visibleText, visible } from "../base/text.js";
import { get } from "../data/api.js";
import { ArrayRows } from "../data/rows.js";
import { rewrite, to } from "../router.js";
import { choice } from "../widgets/filters.js";
import { empty, failed, loading } from "../widgets/states.js";
import { VirtualList } from "../widgets/virtual_list.js";
import { sessionTabs } from "./tabs.js";
import { traceView } from "./trace.js";

const seconds = (time) => (typeof time === "number" ? time : time ? Date.parse(time) / 1000 : 0);

function traceRow(trace) {
  const start = seconds(trace.started_at);
  const end = seconds(trace.ended_at);
  return {
    href: to(["t", trace.trace_id]),
    class: "trace-row",
    content: [
      h("span", {
        class: `state-dot ${trace.errors ? "is-error" : end ? "is-ok" : "is-open"}`,
        role: "img",
        "aria-label": trace.errors ? "error" : end ? "ok" : "open",
      }),
      h(
        "span",
        { class: "clip trace-name" },
        h("b", null, visible(trace.name || "trace")),
        h("span", { class: "faint mono small" }, ` ${visibleText(trace.trace_id)}`),
      ),
      h("span", { class: "clip dim mono trace-group" }, visible(trace.sessions?.join(", ") || trace.group_id || "")),
      h("span", { class: "num" }, count(trace.spans, "span")),
      h(
        "span",
        { class: "num" },
        trace.errors ? h("span", { class: "badge is-error" }, icon("error"), count(trace.errors, "error")) : null,
      ),
      h("span", { class: "num dim" }, start && end ? duration((end - start) * 1000) : "open"),
      h("span", { class: "num dim", title: dateTime(start) }, ago(start)),
    ],
  };
}

const NO_TRACES = {
  title: "No traces yet",
  text: "What agents do with this store appears here, and what others send to this viewer with the exporter ariadne.",
  command: "telemetry:\n  exporter: [ariadne]",
};
const NO_ERRORS = { title: "No errors", text: "No trace has one.", iconName: "check" };
const STATES = [
  ["", "All traces"],
  ["errors", "With errors"],
];
const PAGE = 200;

function crumbsOf(session) {
  if (!session) return [{ text: "Traces" }];
  return [{ text: "Sessions", href: "#/" }, { text: session, href: to(["s", session]) }, { text: "traces" }];
}

/** Load pages of traces until the rows in view are there. */
async function loadTraces(ctx, session, state, wanted) {
  const traces = [];
  let isMore = true;
  while (isMore && traces.length < wanted) {
    const query = { session, state, offset: traces.length, limit: PAGE };
    const page = await get("/api/traces", query, ctx.signal);
    traces.push(...page.traces);
    isMore = page.more;
  }
  return { traces, isMore };
}

export async function tracesView(ctx, { session = "", params }) {
  ctx.crumbs(crumbsOf(session), session ? "sessions" : "traces");
  let state = params.state === "errors" ? "errors" : "";
  let wanted = PAGE;
  if (session) {
    // Most sessions have one trace, which is named like them: there is no list to choose from.
    const { traces } = await loadTraces(ctx, session, "", PAGE);
    if (traces.length === 1) return traceView(ctx, { trace: traces[0].trace_id, session, params });
  }
  const rows = new ArrayRows((trace) => trace.trace_id);
  const height = () => (isNarrow() ? 76 : 46);
  const list = new VirtualList({ rows, row: traceRow, height, label: "Traces", scroller: ctx.main });
  const total = h("span", { class: "count", role: "status" });
  const note = h("div", null, loading());
  const more = h("button", { class: "btn more", type: "button", hidden: true }, "Show earlier traces");
  const load = async () => {
    try {
      const { traces, isMore } = await loadTraces(ctx, session, state, wanted);
      rows.set(traces);
      more.hidden = !isMore;
      replace(total, `${count(traces.length, "trace")}${isMore ? ", and more" : ""}`);
      replace(note, traces.length ? null : empty(state ? NO_ERRORS : NO_TRACES));
    } catch (error) {
      if (error.name !== "AbortError") replace(note, failed(error, load));
    }
  };
  more.addEventListener("click", () => {
    wanted += PAGE;
    load();
  });
  const filter = choice("Which traces", state, STATES, (value) => {
    state = value;
    rewrite(session ? ["s", session, "traces"] : ["traces"], { state });
    load();
  });
  const head = h(
    "div",
    { class: "page-head" },
    h("h1", { class: session ? "mono" : "" }, session ? visible(session) : "Traces"),
    total,
    h("span", { class: "grow" }),
    filter.el,
  );
  const tabs = session ? sessionTabs(session, "traces") : null;
  replace(ctx.main, h("div", { class: "page" }, head, tabs, list.el, more, note));
  const loadSoon = debounce(load, 300);
  ctx.onLive((event) => {
    if (["span", "trace", "refresh"].includes(event.type)) loadSoon();
  });
  ctx.onLeave(() => {
    loadSoon.cancel();
    list.destroy();
  });
  await load();
  return { onKey: (event) => list.key(event) };
}
