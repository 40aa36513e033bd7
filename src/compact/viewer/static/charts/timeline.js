// The timeline: what each prompt is made of, call by call, with the limits of the window and every compaction.
import { h, isNarrow, replace, s } from "../base/dom.js";
import { count, short, whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { Overview } from "./overview.js";
import { PARTS } from "./parts.js";
import { areas, grid, thresholds } from "./plot.js";
import { CallRange, frame } from "./scale.js";

// Chosen: a click that moves less than this is no drag, and a flag with its version needs this width.
const DRAG_PX = 6;
const FLAG_PX = 42;

const markIcon = (plan) => (plan.failures?.length ? "error" : plan.restored_from !== null ? "undo" : "layers");

export class Timeline {
  /** `openCall(number)` opens a call, `planHref(version)` is the link of a plan, `onCursor(call)` gets its call. */
  constructor({ openCall, planHref, onCursor }) {
    Object.assign(this, { openCall, planHref, onCursor });
    this.range = new CallRange();
    this.hidden = new Set();
    this.cursor = -1;
    this.fit = false;
    this.calls = [];
    this.svg = s("svg", { class: "timeline-svg", "aria-hidden": "true" });
    this.marks = h("div", { class: "marks" });
    this.line = h("div", { class: "cursor-line", hidden: true });
    this.band = h("div", { class: "drag-band", hidden: true });
    this.pad = h("div", {
      class: "pad",
      tabindex: 0,
      role: "slider",
      "aria-label": "Model call",
      "aria-orientation": "horizontal",
    });
    this.plot = h("div", { class: "plot" }, this.svg, this.band, this.line, this.pad, this.marks);
    this.overview = new Overview(this.range, () => this.draw());
    this.buttons = this.makeButtons();
    this.el = h("div", { class: "timeline" }, this.plot, this.overview.el);
    this.listen();
    this.resizeObserver = new ResizeObserver(() => this.draw());
    this.resizeObserver.observe(this.plot);
  }

  destroy() {
    this.resizeObserver.disconnect();
  }

  makeButtons() {
    const button = (name, label, action) =>
      h(
        "button",
        { class: "btn ghost square", type: "button", title: label, "aria-label": label, on: { click: action } },
        icon(name),
      );
    const scale = h(
      "button",
      {
        class: "btn ghost small",
        type: "button",
        "aria-pressed": "false",
        title: "Scale to the data instead of the window",
      },
      "Fit",
    );
    scale.addEventListener("click", () => {
      this.fit = !this.fit;
      scale.setAttribute("aria-pressed", String(this.fit));
      this.draw();
    });
    return h(
      "div",
      { class: "zoom", role: "group", "aria-label": "Zoom" },
      scale,
      button("minus", "Zoom out (−)", () => this.zoom(2)),
      button("plus", "Zoom in (+)", () => this.zoom(0.5)),
      button("fit", "Show all calls (0)", () => this.reset()),
    );
  }

  update({ calls, limits, plans }) {
    const at = this.calls[this.cursor]?.number;
    const wasAtEnd = this.cursor === this.calls.length - 1;
    Object.assign(this, { calls, limits, plans });
    this.range.grow(calls.length);
    const same = calls.findIndex((call) => call.number === at);
    this.cursor = wasAtEnd || same < 0 ? calls.length - 1 : same;
    this.draw();
    this.onCursor(calls[this.cursor]);
  }

  hide(key, isHidden) {
    if (isHidden) this.hidden.add(key);
    else this.hidden.delete(key);
    this.draw();
  }

  most() {
    const used = this.calls
      .slice(this.range.from, this.range.to)
      .map((call) => PARTS.reduce((sum, { key }) => sum + (this.hidden.has(key) ? 0 : (call.parts?.[key] ?? 0)), 0));
    const data = Math.max(1, ...used);
    const limit = this.limits?.window ?? 0;
    return this.fit ? data * 1.08 : Math.max(data, limit) * 1.04;
  }

  draw() {
    const width = this.plot.clientWidth;
    if (!width || !this.calls.length) return;
    const narrow = isNarrow();
    const height = narrow ? 230 : 320;
    const margin = { left: narrow ? 38 : 46, right: narrow ? 8 : 96, top: 30, bottom: 26 };
    const most = this.most();
    this.frame = frame({ width, height, margin, range: this.range, most });
    const inView = this.calls.slice(this.range.from, this.range.to);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    replace(
      this.svg,
      grid(this.frame, most, this.range, this.calls),
      s(
        "g",
        { class: "areas" },
        areas({
          frame: this.frame,
          calls: inView,
          first: this.range.from,
          hidden: this.hidden,
          limit: this.fit ? 0 : this.limits?.window,
        }),
      ),
      thresholds(this.frame, this.limits, most),
    );
    Object.entries({
      left: margin.left,
      top: margin.top,
      width: this.frame.inner.width,
      height: this.frame.inner.height,
    }).forEach(([key, px]) => this.pad.style.setProperty(key, `${px}px`));
    this.drawMarks();
    this.drawCursor();
    this.overview.draw(this.calls, this.plans, { margin, limit: this.limits?.window });
  }

  callIndexOf(plan) {
    const index = this.calls.findIndex((call) => call.number === plan.first_call);
    return index >= 0 ? index : plan.first_call === null ? this.calls.length : -1;
  }

  drawMarks() {
    const placed = (this.plans ?? [])
      .map((plan) => ({ plan, index: this.callIndexOf(plan) }))
      .filter(({ index }) => index >= this.range.from && index <= this.range.to && index >= 0)
      .map(({ plan, index }) => ({ plan, x: this.frame.x(index) }));
    replace(
      this.marks,
      placed.map(({ plan, x }, i) => this.mark(plan, x, (placed[i + 1]?.x ?? Infinity) - x)),
    );
  }

  /** Make the mark of a plan: with a flag if there is room for one before the next mark, else with a diamond. */
  mark(plan, x, room) {
    const isRestored = plan.restored_from !== null;
    const names = {
      "is-restored": isRestored,
      "is-failed": Boolean(plan.failures?.length),
      "is-tight": room < FLAG_PX,
      "is-flip": x + FLAG_PX > this.frame.width,
      "is-current": plan.is_current,
    };
    const label = `${isRestored ? "Restored plan" : "Compaction"} v${plan.version}: ${whole(plan.tokens_before)} to ${whole(plan.tokens_after)} tokens${(plan.failures ?? []).map(({ text }) => `; ${text}`).join("")}`;
    const flag = room < FLAG_PX ? null : [icon(markIcon(plan)), h("span", null, `v${plan.version}`)];
    return h(
      "a",
      {
        class: ["mark", ...Object.keys(names).filter((key) => names[key])].join(" "),
        href: this.planHref(plan.version),
        title: label,
        "aria-label": label,
        style: { left: `${x}px`, height: `${this.frame.inner.height + 18}px` },
      },
      h("span", { class: "mark-flag" }, flag),
    );
  }

  drawCursor() {
    const call = this.calls[this.cursor];
    const isInView = call && this.cursor >= this.range.from && this.cursor < this.range.to;
    this.line.hidden = !isInView;
    if (!call) return;
    const props = {
      "aria-valuemin": this.calls[0].number,
      "aria-valuemax": this.calls.at(-1).number,
      "aria-valuenow": call.number,
      "aria-valuetext": `Call ${call.number}: ${count(call.tokens, "token")}, plan ${call.plan_version}`,
    };
    for (const [key, value] of Object.entries(props)) this.pad.setAttribute(key, value);
    if (!isInView) return;
    this.line.style.setProperty("left", `${this.frame.x(this.cursor)}px`);
    this.line.style.setProperty("width", `${Math.max(1.5, this.frame.slot)}px`);
    this.line.style.setProperty("height", `${this.frame.inner.height}px`);
    this.line.dataset.tokens = short(call.tokens);
  }

  moveCursor(index) {
    const next = Math.max(0, Math.min(this.calls.length - 1, index));
    if (next === this.cursor) return;
    this.cursor = next;
    this.drawCursor();
    this.onCursor(this.calls[next]);
  }

  zoom(factor) {
    this.range.zoom(
      factor,
      this.range.from <= this.cursor && this.cursor < this.range.to ? this.cursor + 0.5 : undefined,
    );
    this.draw();
  }

  reset() {
    this.range.set(0, this.calls.length);
    this.draw();
  }

  key(event) {
    const step = event.shiftKey ? Math.max(1, Math.round(this.range.size / 10)) : 1;
    const moves = { ArrowLeft: this.cursor - step, ArrowRight: this.cursor + step };
    if (event.key in moves) {
      this.range.include(Math.max(0, Math.min(this.calls.length - 1, moves[event.key])));
      this.moveCursor(moves[event.key]);
      this.draw();
    } else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "0") this.reset();
    else return false;
    return true;
  }

  listen() {
    let from = null;
    const px = (event) => event.clientX - this.plot.getBoundingClientRect().left;
    this.pad.addEventListener("pointerdown", (event) => {
      from = px(event);
      if (event.pointerType === "mouse") this.pad.setPointerCapture(event.pointerId);
    });
    this.pad.addEventListener("pointermove", (event) => {
      if (!this.frame) return;
      this.moveCursor(this.frame.indexAt(px(event)));
      if (from !== null && event.pointerType === "mouse") this.showBand(from, px(event));
    });
    this.pad.addEventListener("pointerup", (event) => {
      const to = px(event);
      const isDrag = from !== null && Math.abs(to - from) > DRAG_PX && event.pointerType === "mouse";
      if (isDrag) this.select(Math.min(from, to), Math.max(from, to));
      else if (from !== null && event.pointerType === "mouse" && event.button === 0)
        this.openCall(this.calls[this.cursor].number);
      else this.moveCursor(this.frame.indexAt(to));
      from = null;
      this.band.hidden = true;
    });
    this.pad.addEventListener("pointercancel", () => {
      from = null;
      this.band.hidden = true;
    });
    this.pad.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.openCall(this.calls[this.cursor].number);
    });
  }

  showBand(from, to) {
    this.band.hidden = Math.abs(to - from) <= DRAG_PX;
    this.band.style.setProperty("left", `${Math.min(from, to)}px`);
    this.band.style.setProperty("width", `${Math.abs(to - from)}px`);
  }

  select(from, to) {
    this.range.set(this.frame.indexAt(from), this.frame.indexAt(to) + 1);
    this.draw();
  }
}
