// A list of any length of which only the rows in view exist. One tab stop; keys move the active row.
import { h } from "../base/dom.js";

// Chosen: rows drawn beyond the view, so that scrolling shows no gaps.
const MARGIN_ROWS = 8;
let lists = 0;

export class VirtualList {
  /**
   * `row(item, index)` returns {href?, content, class?}; `height()` is the height of each row; without `scroller` it
   * scrolls itself.
   */
  constructor({
    rows,
    row,
    height,
    label,
    scroller = null,
    onOpen = null,
    onActive = null,
    role = "listbox",
    onKey = null,
  }) {
    Object.assign(this, { rows, row, height, onOpen, onActive, role, onKey });
    this.id = `list-${(lists += 1)}`;
    this.body = h("div", { class: "vlist-body", role: "presentation" });
    this.el = h(
      "div",
      { class: scroller ? "vlist" : "vlist own-scroll", tabindex: 0, role, "aria-label": label },
      this.body,
    );
    this.scroller = scroller ?? this.el;
    this.drawn = new Map();
    this.active = -1;
    this.activeKey = null;
    this.draw = this.draw.bind(this);
    this.drawSoon = () => {
      this.frame ||= requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    };
    this.scroller.addEventListener("scroll", this.drawSoon, { passive: true });
    this.resizeObserver = new ResizeObserver(this.drawSoon);
    this.resizeObserver.observe(this.scroller);
    this.el.addEventListener("focus", () => {
      if (this.active < 0 && this.rows.total) this.select(this.first ?? 0);
    });
    this.el.addEventListener("click", (event) => this.handleClick(event));
    rows.onChange(() => this.update());
  }

  destroy() {
    this.scroller.removeEventListener("scroll", this.drawSoon);
    this.resizeObserver.disconnect();
    cancelAnimationFrame(this.frame);
  }

  update() {
    if (this.activeKey !== null) {
      const at = this.rows.find(this.activeKey);
      if (at >= 0) this.active = at;
    }
    if (this.active >= this.rows.total) this.active = this.rows.total - 1;
    this.draw();
  }

  /** Return the first and the last row to draw: those in view, with a margin. */
  range() {
    const height = this.height();
    const view = this.scroller.getBoundingClientRect();
    const top = view.top - this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / height) - MARGIN_ROWS);
    const last = Math.min(this.rows.total, Math.ceil((top + this.scroller.clientHeight) / height) + MARGIN_ROWS) - 1;
    return [first, last];
  }

  draw() {
    const height = this.height();
    this.body.style.height = `${this.rows.total * height}px`;
    const [first, last] = this.range();
    this.first = Math.max(0, first + (first ? MARGIN_ROWS : 0));
    this.visibleRange = [first, last];
    if (last >= first) this.rows.ensure(first, last);
    for (const [index, { el }] of this.drawn)
      if (index < first || index > last) {
        el.remove();
        this.drawn.delete(index);
      }
    // From the end, so that each row stands before the next one: a screen reader reads them in order.
    let next = null;
    for (let index = last; index >= first; index -= 1) next = this.place(index, height, next);
    this.markActive();
  }

  /** Draw every row in view again. */
  redraw() {
    for (const row of this.drawn.values()) row.height = 0;
    this.drawSoon();
  }

  place(index, height, next) {
    const item = this.rows.get(index);
    const old = this.drawn.get(index);
    if (old && old.item === item && old.height === height) return old.el;
    const el = item === undefined ? this.blank() : this.make(item, index);
    el.style.setProperty("transform", `translateY(${index * height}px)`);
    el.style.setProperty("height", `${height}px`);
    if (old) old.el.replaceWith(el);
    else this.body.insertBefore(el, next);
    this.drawn.set(index, { el, item, height });
    return el;
  }

  blank() {
    return h("div", { class: "vrow vrow-blank", "aria-hidden": "true" }, h("span", { class: "skeleton-line" }));
  }

  make(item, index) {
    const { href, content, class: name = "", props } = this.row(item, index);
    const shared = {
      class: `vrow ${name}`,
      role: this.role === "tree" ? "treeitem" : "option",
      id: `${this.id}-${index}`,
      tabindex: -1,
      "aria-setsize": this.rows.total,
      "aria-posinset": index + 1,
      "aria-selected": "false",
      data: { index },
      ...props,
    };
    return href ? h("a", { ...shared, href, draggable: "false" }, content) : h("div", shared, content);
  }

  markActive() {
    for (const [index, { el }] of this.drawn) {
      const isActive = index === this.active;
      el.classList.toggle("is-active", isActive);
      if (el.hasAttribute("aria-selected")) el.setAttribute("aria-selected", String(isActive));
    }
    if (this.active >= 0 && this.drawn.has(this.active))
      this.el.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.el.removeAttribute("aria-activedescendant");
  }

  select(index, { show = true } = {}) {
    if (!this.rows.total) return;
    this.active = Math.max(0, Math.min(this.rows.total - 1, index));
    const item = this.rows.get(this.active);
    this.activeKey = item === undefined ? null : this.rows.key(item);
    if (show) this.scrollTo(this.active);
    this.draw();
    if (item !== undefined) this.onActive?.(item, this.active);
  }

  scrollTo(index) {
    const height = this.height();
    const view = this.scroller.getBoundingClientRect();
    const top = this.body.getBoundingClientRect().top + index * height;
    if (top < view.top + 8) this.scroller.scrollTop += top - view.top - 8;
    else if (top + height > view.bottom - 8) this.scroller.scrollTop += top + height - view.bottom + 8;
  }

  handleClick(event) {
    const row = event.target.closest(".vrow[data-index]");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const index = Number(row.dataset.index);
    this.select(index, { show: false });
    if (this.onOpen && !row.hasAttribute("href")) this.onOpen(this.rows.get(index), index);
  }

  open() {
    const item = this.rows.get(this.active);
    if (item === undefined) return false;
    const { href } = this.row(item, this.active);
    if (href) location.hash = href;
    else this.onOpen?.(item, this.active);
    return true;
  }

  /** Handle a key; return True if the list uses it. */
  key(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.height()) - 1);
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
    if (this.onKey?.(event)) return true;
    if (event.key in steps) this.select(this.active < 0 ? (this.first ?? 0) : this.active + steps[event.key]);
    else if (event.key === "Home") this.select(0);
    else if (event.key === "End") this.select(this.rows.total - 1);
    else if (event.key === "Enter") return this.open();
    else return false;
    return true;
  }
}
