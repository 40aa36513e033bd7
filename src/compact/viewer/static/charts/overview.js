// The whole session in a strip: shows which calls are in view, and moves them.
import { h, replace, s } from "../base/dom.js";

const HEIGHT = 40;

export class Overview {
  constructor(range, onMove) {
    this.range = range;
    this.onMove = onMove;
    this.svg = s("svg", { class: "overview-svg", height: HEIGHT, "aria-hidden": "true" });
    this.window = h("div", { class: "overview-window" });
    this.el = h("div", { class: "overview", title: "Drag to move along the session" }, this.svg, this.window);
    this.listen();
  }

  draw(calls, plans, { margin, limit }) {
    this.el.hidden = calls.length < 40 && this.range.isWhole;
    const width = this.el.clientWidth;
    if (this.el.hidden || !width) return;
    this.left = margin.left;
    this.inner = width - margin.left - margin.right;
    const most = Math.max(limit ?? 0, ...calls.map((call) => call.tokens), 1);
    const x = (index) => this.left + (index / calls.length) * this.inner;
    const y = (tokens) => HEIGHT - 2 - (tokens / most) * (HEIGHT - 6);
    const every = Math.max(1, Math.floor(calls.length / this.inner));
    const points = calls
      .filter((_, index) => index % every === 0)
      .map((call, index) => `${x(index * every).toFixed(1)},${y(call.tokens).toFixed(1)}`);
    const d = `M${this.left},${HEIGHT}L${points.join("L")}L${this.left + this.inner},${y(calls.at(-1).tokens)}V${HEIGHT}Z`;
    const marks = (plans ?? [])
      .map((plan) => calls.findIndex((call) => call.number === plan.first_call))
      .filter((index) => index >= 0);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    replace(
      this.svg,
      s("path", { d, class: "overview-area" }),
      marks.map((index) => s("line", { x1: x(index), x2: x(index), y1: 0, y2: HEIGHT, class: "overview-mark" })),
    );
    this.window.style.setProperty("left", `${x(this.range.from)}px`);
    this.window.style.setProperty("width", `${Math.max(4, x(this.range.to) - x(this.range.from))}px`);
  }

  listen() {
    let isDragging = false;
    const move = (event) => {
      const at = ((event.clientX - this.el.getBoundingClientRect().left - this.left) / this.inner) * this.range.total;
      const size = this.range.size;
      this.range.set(at - size / 2, at + size / 2);
      this.onMove();
    };
    this.el.addEventListener("pointerdown", (event) => {
      if (this.range.isWhole) return;
      isDragging = true;
      this.el.setPointerCapture(event.pointerId);
      move(event);
    });
    this.el.addEventListener("pointermove", (event) => {
      if (isDragging) move(event);
    });
    this.el.addEventListener("pointerup", () => {
      isDragging = false;
    });
    this.el.addEventListener("pointercancel", () => {
      isDragging = false;
    });
  }
}
