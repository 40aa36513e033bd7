// The log of a session: every message, and what the plan in force does to it.
import { debounce, h, isNarrow, replace } from "../base/dom.js";
import { count, whole } from "../base/format.js";
import { ACTIONS, actionChip } from "../base/icons.js";
import { oneLine, visible } from "../base/text.js";
import { get, segment } from "../data/api.js";
import { PagedRows } from "../data/rows.js";
import { rewrite, to } from "../router.js";
import { roleTag } from "../widgets/content.js";
import { copyButton } from "../widgets/copy.js";
import { closeDrawer, showMessage } from "../widgets/drawer.js";
import { choice, searchField } from "../widgets/filters.js";
import { empty, failed, loading } from "../widgets/states.js";
import { VirtualList } from "../widgets/virtual_list.js";
import { sessionTabs } from "./tabs.js";

function messageRow(message) {
  return {
    class: "message-row",
    content: [
      h("span", { class: "num faint" }, whole(message.seq)),
      roleTag(message.role, message.tool),
      h(
        "span",
        { class: "clip preview" },
        message.preview ? oneLine(message.preview) : h("span", { class: "faint" }, "no text"),
      ),
      actionChip(message.action),
      h("span", { class: "num dim" }, whole(message.tokens)),
    ],
  };
}

const COLUMNS = ["#", "Role", "Text", "Now", "Tokens"];

const FILTERS = ["q", "role", "tool", "action"];

class MessagesPage {
  constructor(ctx, id, params) {
    Object.assign(this, { ctx, id });
    this.filter = Object.fromEntries(FILTERS.map((name) => [name, params[name] ?? ""]));
    this.rows = new PagedRows({ size: 200, load: (offset, limit) => this.load(offset, limit) });
    this.list = new VirtualList({
      rows: this.rows,
      row: messageRow,
      height: () => (isNarrow() ? 66 : 40),
      label: "Messages",
      scroller: ctx.main,
      onOpen: (message) => this.open(message),
    });
    this.total = h("span", { class: "count", role: "status" });
    this.note = h("div", null, loading(10));
    this.rows.onChange(() => this.drawTotal());
    this.rows.onError = (error) =>
      replace(
        this.note,
        failed(error, () => this.rows.reset()),
      );
  }

  async load(offset, limit) {
    const path = `/api/sessions/${segment(this.id)}/messages`;
    const answer = await get(path, { ...this.filter, offset, limit }, this.ctx.signal);
    this.logTotal = answer.log_total;
    return { total: answer.total, rows: answer.messages };
  }

  get isFiltered() {
    return Object.values(this.filter).some(Boolean);
  }

  drawTotal() {
    const all = count(this.logTotal ?? this.rows.total, "message");
    replace(this.total, this.isFiltered ? `${whole(this.rows.total)} of ${all}` : all);
    const nothing = this.isFiltered
      ? { title: "No message matches", text: "Change the words or the filters above." }
      : { title: "No messages", text: "The log of this session is empty." };
    replace(this.note, this.rows.total ? null : empty(nothing));
  }

  /** Write the filters, and the message that is open, into the address. */
  rewriteAddress(message = "") {
    rewrite(message ? ["s", this.id, "m", message] : ["s", this.id, "messages"], this.filter);
  }

  open(message) {
    this.rewriteAddress(message.id);
    showMessage(this.id, message.id, { onClose: () => this.rewriteAddress() });
  }

  change(name, value) {
    this.filter[name] = value;
    this.rewriteAddress();
    this.ctx.main.scrollTop = 0;
    return this.rows.reset();
  }

  /** Make the filters; what there is to choose from is read meanwhile. */
  toolbar() {
    const names = { role: "Every role", tool: "Every tool", action: "Every action" };
    const fields = Object.entries(names).map(([name, all]) => {
      const none = [["", all]];
      const field = choice(all, this.filter[name], none, (value) => this.change(name, value));
      return { name, none, field };
    });
    get(`/api/sessions/${segment(this.id)}/facets`, {}, this.ctx.signal)
      .then((facets) => {
        for (const { name, none, field } of fields) {
          const found = Object.entries(facets[name]).map(([key, n]) => [
            key,
            name === "action" ? (ACTIONS[key]?.label ?? key) : key,
            n,
          ]);
          field.draw(this.filter[name], [...none, ...found]);
        }
      })
      .catch(() => {}); // the list itself shows the failure
    return h(
      "div",
      { class: "toolbar" },
      searchField("Search the messages", this.filter.q, (q) => this.change("q", q)),
      fields.map(({ field }) => field.el),
    );
  }

  start() {
    const heads = h(
      "div",
      { class: "message-heads", "aria-hidden": "true" },
      COLUMNS.map((text) => h("span", null, text)),
    );
    const copyId = copyButton(this.id, { label: "", name: "Copy the session's id" });
    const head = h("div", { class: "page-head" }, h("h1", { class: "mono" }, visible(this.id)), copyId, this.total);
    const tabs = sessionTabs(this.id, "messages");
    replace(this.ctx.main, h("div", { class: "page" }, head, tabs, this.toolbar(), heads, this.list.el, this.note));
  }
}

export async function messagesView(ctx, { session: id, message, params }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id, href: to(["s", id]) }, { text: "messages" }]);
  const page = new MessagesPage(ctx, id, params);
  page.start();
  const refreshSoon = debounce(() => page.rows.refresh(...(page.list.visibleRange ?? [0, 0])), 400);
  ctx.onLive((event) => {
    if (event.type === "refresh" || (event.type === "session" && event.id === id)) refreshSoon();
  });
  ctx.onLeave(() => {
    refreshSoon.cancel();
    page.list.destroy();
    // Removed without closing: closing rewrites the address, and by now another view is shown.
    document.querySelector(".drawer")?.remove();
  });
  await page.rows.reset();
  if (message) page.open({ id: message });
  return { onKey: (event) => (event.key === "Escape" && closeDrawer()) || page.list.key(event) };
}
