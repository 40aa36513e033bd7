// Traces that arrived: newest first, of everything or of one session.
import { get } from "../api.js";
import { debounce, h, isNarrow, replace } from "../dom.js";
import { ago, count, duration, moment } from "../format.js";
import { icon } from "../icons.js";
import { to } from "../router.js";
import { ArraySource } from "../source.js";
import { empty, failed, loading } from "../states.js";
import { plain, shown } from "../text.js";
import { VirtualList } from "../virtual.js";
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
        h("b", null, shown(trace.name || "trace")),
        h("span", { class: "faint mono small" }, ` ${plain(trace.trace_id)}`),
      ),
      h("span", { class: "clip dim mono trace-group" }, shown(trace.sessions?.join(", ") || trace.group_id || "")),
      h("span", { class: "num" }, count(trace.spans, "span")),
      h(
        "span",
        { class: "num" },
        trace.errors ? h("span", { class: "badge is-error" }, icon("error"), count(trace.errors, "error")) : null,
      ),
      h("span", { class: "num dim" }, start && end ? duration((end - start) * 1000) : "open"),
      h("span", { class: "num dim", title: moment(start) }, ago(start)),
    ],
  };
}

const NOTHING = {
  title: "No traces yet",
  text: "Spans that an exporter posts to this viewer appear here, live. Switch it on in the configuration:",
  command: "telemetry:\n  exporter: [ariadne]",
};

function crumbsOf(session) {
  if (!session) return [{ text: "Traces" }];
  return [{ text: "Sessions", href: "#/" }, { text: session, href: to(["s", session]) }, { text: "traces" }];
}

export async function tracesView(ctx, { session = "" }) {
  ctx.crumbs(crumbsOf(session), session ? "sessions" : "traces");
  const source = new ArraySource((trace) => trace.trace_id);
  const height = () => (isNarrow() ? 76 : 46);
  const list = new VirtualList({ source, row: traceRow, height, label: "Traces", scroller: ctx.main });
  const total = h("span", { class: "count", role: "status" });
  const note = h("div", null, loading());
  const read = async () => {
    try {
      const { traces } = await get("/api/traces", { session, limit: 500 }, ctx.signal);
      source.set(traces);
      replace(total, count(traces.length, "trace"));
      replace(note, traces.length ? null : empty(NOTHING));
    } catch (error) {
      if (error.name !== "AbortError") replace(note, failed(error, read));
    }
  };
  const head = h(
    "div",
    { class: "page-head" },
    h("h1", { class: session ? "mono" : "" }, session ? shown(session) : "Traces"),
    total,
  );
  replace(ctx.main, h("div", { class: "page" }, head, session ? sessionTabs(session, "traces") : null, list.el, note));
  const soon = debounce(read, 300);
  ctx.onLive((event) => {
    if (["span", "trace", "refresh"].includes(event.type)) soon();
  });
  ctx.onEnd(() => {
    soon.cancel();
    list.destroy();
  });
  await read();
  return { keys: (event) => list.key(event) };
}
