// A list of any length of which only what is in sight exists. One tab stop; the active row is moved by keys.
import { h } from "./dom.js";

const MARGIN_ROWS = 8;
let lists = 0;

export class VirtualList {
  /** `row(item, index)` gives {href?, content, class?}; `height()` is the height of each row; without `scroller` it scrolls itself. */
  constructor({
    source,
    row,
    height,
    label,
    scroller = null,
    onOpen = null,
    onActive = null,
    role = "listbox",
    extra = null,
  }) {
    Object.assign(this, { source, row, height, onOpen, onActive, role, extra });
    this.id = `list-${(lists += 1)}`;
    this.body = h("div", { class: "vlist-body", role: "presentation" });
    this.el = h(
      "div",
      { class: scroller ? "vlist" : "vlist own-scroll", tabindex: 0, role, "aria-label": label },
      this.body,
    );
    this.scroller = scroller ?? this.el;
    this.rows = new Map();
    this.active = -1;
    this.activeKey = null;
    this.draw = this.draw.bind(this);
    this.soon = () => {
      this.frame ||= requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    };
    this.scroller.addEventListener("scroll", this.soon, { passive: true });
    this.watch = new ResizeObserver(this.soon);
    this.watch.observe(this.scroller);
    this.el.addEventListener("focus", () => {
      if (this.active < 0 && this.source.total) this.select(this.first ?? 0);
    });
    this.el.addEventListener("click", (event) => this.clicked(event));
    source.watch(() => this.changed());
  }

  destroy() {
    this.scroller.removeEventListener("scroll", this.soon);
    this.watch.disconnect();
    cancelAnimationFrame(this.frame);
  }

  changed() {
    if (this.activeKey !== null) {
      const at = this.source.find(this.activeKey);
      if (at >= 0) this.active = at;
    }
    if (this.active >= this.source.total) this.active = this.source.total - 1;
    this.draw();
  }

  /** The rows in sight, with a margin. */
  range() {
    const height = this.height();
    const view = this.scroller.getBoundingClientRect();
    const top = view.top - this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(top / height) - MARGIN_ROWS);
    const last = Math.min(this.source.total, Math.ceil((top + this.scroller.clientHeight) / height) + MARGIN_ROWS) - 1;
    return [first, last];
  }

  draw() {
    const height = this.height();
    this.body.style.height = `${this.source.total * height}px`;
    const [first, last] = this.range();
    this.first = Math.max(0, first + (first ? MARGIN_ROWS : 0));
    this.span = [first, last];
    if (last >= first) this.source.ensure(first, last);
    for (const [index, made] of this.rows)
      if (index < first || index > last) {
        made.el.remove();
        this.rows.delete(index);
      }
    // From the end, so that each row stands before the next one: who listens to the page hears them in order.
    let next = null;
    for (let index = last; index >= first; index -= 1) next = this.place(index, height, next);
    this.mark();
  }

  /** Make every row in sight anew. */
  redraw() {
    for (const made of this.rows.values()) made.height = 0;
    this.soon();
  }

  place(index, height, next) {
    const item = this.source.get(index);
    const old = this.rows.get(index);
    if (old && old.item === item && old.height === height) return old.el;
    const el = item === undefined ? this.blank() : this.make(item, index);
    el.style.setProperty("transform", `translateY(${index * height}px)`);
    el.style.setProperty("height", `${height}px`);
    if (old) old.el.replaceWith(el);
    else this.body.insertBefore(el, next);
    this.rows.set(index, { el, item, height });
    return el;
  }

  blank() {
    return h("div", { class: "vrow vrow-blank", "aria-hidden": "true" }, h("span", { class: "bone" }));
  }

  make(item, index) {
    const { href, content, class: name = "", props } = this.row(item, index);
    const shared = {
      class: `vrow ${name}`,
      role: this.role === "tree" ? "treeitem" : "option",
      id: `${this.id}-${index}`,
      tabindex: -1,
      "aria-setsize": this.source.total,
      "aria-posinset": index + 1,
      "aria-selected": "false",
      data: { index },
      ...props,
    };
    return href ? h("a", { ...shared, href, draggable: "false" }, content) : h("div", shared, content);
  }

  mark() {
    for (const [index, { el }] of this.rows) {
      const isActive = index === this.active;
      el.classList.toggle("is-active", isActive);
      if (el.hasAttribute("aria-selected")) el.setAttribute("aria-selected", String(isActive));
    }
    if (this.active >= 0 && this.rows.has(this.active))
      this.el.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
    else this.el.removeAttribute("aria-activedescendant");
  }

  select(index, { show = true } = {}) {
    if (!this.source.total) return;
    this.active = Math.max(0, Math.min(this.source.total - 1, index));
    const item = this.source.get(this.active);
    this.activeKey = item === undefined ? null : this.source.key(item);
    if (show) this.reveal(this.active);
    this.draw();
    if (item !== undefined) this.onActive?.(item, this.active);
  }

  reveal(index) {
    const height = this.height();
    const view = this.scroller.getBoundingClientRect();
    const top = this.body.getBoundingClientRect().top + index * height;
    if (top < view.top + 8) this.scroller.scrollTop += top - view.top - 8;
    else if (top + height > view.bottom - 8) this.scroller.scrollTop += top + height - view.bottom + 8;
  }

  clicked(event) {
    const made = event.target.closest(".vrow[data-index]");
    if (!made || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const index = Number(made.dataset.index);
    this.select(index, { show: false });
    if (this.onOpen && !made.hasAttribute("href")) this.onOpen(this.source.get(index), index);
  }

  open() {
    const item = this.source.get(this.active);
    if (item === undefined) return false;
    const { href } = this.row(item, this.active);
    if (href) location.hash = href;
    else this.onOpen?.(item, this.active);
    return true;
  }

  /** True if the key meant something to the list. */
  key(event) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.height()) - 1);
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
    if (this.extra?.(event)) return true;
    if (event.key in steps) this.select(this.active < 0 ? (this.first ?? 0) : this.active + steps[event.key]);
    else if (event.key === "Home") this.select(0);
    else if (event.key === "End") this.select(this.source.total - 1);
    else if (event.key === "Enter") return this.open();
    else return false;
    return true;
  }
}
