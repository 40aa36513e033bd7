// One span: its response, its properties, and all of it raw. What it carries stays covered until it is asked for.
import { block } from "../content.js";
import { h, replace } from "../dom.js";
import { duration, moment } from "../format.js";
import { icon } from "../icons.js";
import { pretty, shown } from "../text.js";
import { millis, stateOf } from "./tree.js";

const SIDES = ["Response", "Properties", "Raw"];
const WORDS = { ok: "ok", error: "error", open: "still open" };

export class Inspector {
  constructor() {
    this.side = "Response";
    this.isRevealed = false;
    this.span = null;
    this.el = h(
      "section",
      { class: "card inspector", "aria-label": "Inspector" },
      h("p", { class: "quiet" }, "Choose a span."),
    );
  }

  show(span) {
    this.span = span;
    const state = stateOf(span);
    const start = millis(span.started_at);
    const took = span.ended_at ? duration(millis(span.ended_at) - start) : "open";
    replace(
      this.el,
      h(
        "div",
        { class: "inspector-head" },
        h("h2", null, shown(span.name || span.kind || "span")),
        h(
          "span",
          { class: `badge is-${state === "open" ? "warn" : state}` },
          icon(state === "ok" ? "check" : state === "error" ? "error" : "play"),
          WORDS[state],
        ),
      ),
      h("p", { class: "dim small" }, `${Number.isFinite(start) ? moment(start / 1000) : "no time"} · ${took}`),
      h(
        "div",
        { class: "segments", role: "tablist", "aria-label": "Sides of the span" },
        SIDES.map((side) => this.tab(side)),
      ),
      h(
        "div",
        { class: "inspector-body", role: "tabpanel", "aria-label": this.side },
        this.isRevealed ? this.body() : this.cover(),
      ),
    );
  }

  tab(side) {
    return h(
      "button",
      {
        class: "segment",
        type: "button",
        role: "tab",
        "aria-selected": String(side === this.side),
        on: {
          click: () => {
            this.side = side;
            this.show(this.span);
          },
        },
      },
      side,
    );
  }

  cover() {
    return h(
      "div",
      { class: "cover" },
      icon("eye"),
      h("p", null, "Payloads are covered: they may hold what people typed and tools returned."),
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
        "Reveal",
      ),
    );
  }

  body() {
    const data = this.span.data ?? {};
    const hide = h(
      "button",
      {
        class: "btn small ghost cover-again",
        type: "button",
        on: {
          click: () => {
            this.isRevealed = false;
            this.show(this.span);
          },
        },
      },
      "Cover again",
    );
    if (this.side === "Raw") return [block(pretty(this.span), { fold: false }), hide];
    if (this.side === "Properties") return [this.properties(data), hide];
    const text = data.output ?? data.response ?? data.error ?? "";
    return [
      text === "" ? h("p", { class: "quiet" }, "This span has no response.") : block(pretty(text), { fold: false }),
      hide,
    ];
  }

  properties(data) {
    const given = Object.entries(data).filter(([key]) => key !== "output");
    if (!given.length) return h("p", { class: "quiet" }, "This span has no properties.");
    return h(
      "dl",
      { class: "props" },
      given.map(([key, value]) => [
        h("dt", null, shown(key)),
        h("dd", { class: "mono" }, shown(typeof value === "object" ? pretty(value) : value)),
      ]),
    );
  }
}
