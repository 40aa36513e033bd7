// One span: its response, its properties, and all of it raw; hidden until the person asks to see it.
import { h, replace } from "../base/dom.js";
import { duration, dateTime } from "../base/format.js";
import { icon } from "../base/icons.js";
import { pretty, visible } from "../base/text.js";
import { to } from "../router.js";
import { block } from "../widgets/content.js";
import { copyButton } from "../widgets/copy.js";
import { millis, stateOf } from "./span_tree.js";

const TABS = ["Response", "Properties", "Raw"];
const STATE_LABELS = { ok: "ok", error: "error", open: "still open" };

/** Lead from a span of ours to the plan that was in force when it ended: to the compaction, where it made one. */
function planLink({ name, data }) {
  const { session_id: session, plan_version: version } = data ?? {};
  if (typeof session !== "string" || !(version > 0)) return null;
  return h(
    "a",
    { class: "readout-open", href: to(["s", session, "p", version]) },
    name === "compact.completed" ? `Compaction v${version}` : `Plan v${version}`,
    icon("arrow"),
  );
}

const responseOf = (data) => data?.output ?? data?.response ?? data?.error ?? "";

export class Inspector {
  constructor() {
    this.chosen = "";
    this.isRevealed = false;
    this.span = null;
    this.el = h(
      "section",
      { class: "card inspector", "aria-label": "Inspector" },
      h("p", { class: "quiet" }, "Select a span."),
    );
  }

  show(span) {
    this.span = span;
    // What has no response is looked at for its properties.
    this.tab = this.chosen || (responseOf(span.data) === "" ? "Properties" : "Response");
    const state = stateOf(span);
    const start = millis(span.started_at);
    const time = span.ended_at ? duration(millis(span.ended_at) - start) : "open";
    replace(
      this.el,
      h(
        "div",
        { class: "inspector-head" },
        h("h2", null, visible(span.name || span.kind || "span")),
        h(
          "span",
          { class: `badge is-${state === "open" ? "warn" : state}` },
          icon(state === "ok" ? "check" : state === "error" ? "error" : "play"),
          STATE_LABELS[state],
        ),
      ),
      h(
        "p",
        { class: "faint mono small span-id" },
        h("span", { class: "clip" }, visible(span.span_id)),
        copyButton(span.span_id, { label: "", name: "Copy the span's id" }),
      ),
      h("p", { class: "dim small" }, `${Number.isFinite(start) ? dateTime(start / 1000) : "no time"} · ${time}`),
      planLink(span),
      h(
        "div",
        { class: "segments", role: "tablist", "aria-label": "Views of the span" },
        TABS.map((name) => this.tabButton(name)),
      ),
      h(
        "div",
        { class: "inspector-body", role: "tabpanel", "aria-label": this.tab },
        this.isRevealed ? this.body() : this.hiddenNotice(),
      ),
    );
  }

  tabButton(name) {
    return h(
      "button",
      {
        class: "segment",
        type: "button",
        role: "tab",
        "aria-selected": String(name === this.tab),
        on: {
          click: () => {
            this.chosen = name;
            this.show(this.span);
          },
        },
      },
      name,
    );
  }

  hiddenNotice() {
    return h(
      "div",
      { class: "hidden-notice" },
      icon("eye"),
      h("p", null, "The content is hidden: it may hold what people typed and tools returned."),
      h(
        "button",
        {
          class: "btn primary",
          type: "button",
          "data-reveal": true,
          on: {
            click: () => {
              this.isRevealed = true;
              this.show(this.span);
            },
          },
        },
        "Show content",
      ),
    );
  }

  body() {
    const data = this.span.data ?? {};
    const hide = h(
      "button",
      {
        class: "btn small ghost hide-content",
        type: "button",
        on: {
          click: () => {
            this.isRevealed = false;
            this.show(this.span);
          },
        },
      },
      "Hide content",
    );
    const raw = pretty(this.span);
    if (this.tab === "Raw") return [block(raw, { fold: false }), copyButton(raw, { label: "Copy JSON" }), hide];
    if (this.tab === "Properties") return [this.properties(data), hide];
    const text = responseOf(data);
    return [
      text === "" ? h("p", { class: "quiet" }, "This span has no response.") : block(pretty(text), { fold: false }),
      text === "" ? null : copyButton(pretty(text)),
      hide,
    ];
  }

  properties(data) {
    const entries = Object.entries(data).filter(([key]) => key !== "output");
    if (!entries.length) return h("p", { class: "quiet" }, "This span has no properties.");
    return h(
      "dl",
      { class: "props" },
      entries.map(([key, value]) => [
        h("dt", null, visible(key)),
        h("dd", { class: "mono" }, visible(typeof value === "object" ? pretty(value) : value)),
      ]),
    );
  }
}
