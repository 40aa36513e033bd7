// The traces that were received, newest first; of all sessions or of one.
import { debounce, h, isNarrow, replace } from "../base/dom.js";
import { ago, count, duration, dateTime } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visibleText, visible } from "../base/text.js";
import { get } from "../data/api.js";
import { ArrayRows } from "../data/rows.js";
import { to } from "../router.js";
import { empty, failed, loading } from "../widgets/states.js";
import { VirtualList } from "../widgets/virtual_list.js";
import { sessionTabs } from "./tabs.js";

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
  text: "Spans that agents send to this viewer appear here, live. Switch the exporter on in the configuration:",
  command: "telemetry:\n  exporter: [ariadne]",
};

function crumbsOf(session) {
  if (!session) return [{ text: "Traces" }];
  return [{ text: "Sessions", href: "#/" }, { text: session, href: to(["s", session]) }, { text: "traces" }];
}

export async function tracesView(ctx, { session = "" }) {
  ctx.crumbs(crumbsOf(session), session ? "sessions" : "traces");
  const rows = new ArrayRows((trace) => trace.trace_id);
  const height = () => (isNarrow() ? 76 : 46);
  const list = new VirtualList({ rows, row: traceRow, height, label: "Traces", scroller: ctx.main });
  const total = h("span", { class: "count", role: "status" });
  const note = h("div", null, loading());
  const load = async () => {
    try {
      const { traces } = await get("/api/traces", { session, limit: 500 }, ctx.signal);
      rows.set(traces);
      replace(total, count(traces.length, "trace"));
      replace(note, traces.length ? null : empty(NO_TRACES));
    } catch (error) {
      if (error.name !== "AbortError") replace(note, failed(error, load));
    }
  };
  const head = h(
    "div",
    { class: "page-head" },
    h("h1", { class: session ? "mono" : "" }, session ? visible(session) : "Traces"),
    total,
  );
  replace(ctx.main, h("div", { class: "page" }, head, session ? sessionTabs(session, "traces") : null, list.el, note));
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
