// The log of a session: every message, and what the plan in force does to it.
import { debounce, h, isNarrow, replace } from "../base/dom.js";
import { count, whole } from "../base/format.js";
import { actionChip } from "../base/icons.js";
import { oneLine, visible } from "../base/text.js";
import { get, segment } from "../data/api.js";
import { PagedRows } from "../data/rows.js";
import { rewrite, to } from "../router.js";
import { roleTag } from "../widgets/content.js";
import { closeDrawer, showMessage } from "../widgets/drawer.js";
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

function logRows(ctx, id) {
  const load = async (offset, limit) => {
    const { total, messages } = await get(`/api/sessions/${segment(id)}/messages`, { offset, limit }, ctx.signal);
    return { total, rows: messages };
  };
  return new PagedRows({ size: 200, load });
}

function openMessage(id, message) {
  rewrite(["s", id, "m", message.id]);
  showMessage(id, message.id, { onClose: () => rewrite(["s", id, "messages"]) });
}

function page(id, rows, list) {
  const total = h("span", { class: "count", role: "status" });
  const note = h("div", null, loading(10));
  rows.onChange(() => {
    replace(total, count(rows.total, "message"));
    replace(note, rows.total ? null : empty({ title: "No messages", text: "The log of this session is empty." }));
  });
  rows.onError = (error) =>
    replace(
      note,
      failed(error, () => rows.reset()),
    );
  const heads = h(
    "div",
    { class: "message-heads", "aria-hidden": "true" },
    COLUMNS.map((text) => h("span", null, text)),
  );
  const head = h("div", { class: "page-head" }, h("h1", { class: "mono" }, visible(id)), total);
  return h("div", { class: "page" }, head, sessionTabs(id, "messages"), heads, list.el, note);
}

export async function messagesView(ctx, { session: id, message }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id, href: to(["s", id]) }, { text: "messages" }]);
  const rows = logRows(ctx, id);
  const height = () => (isNarrow() ? 66 : 40);
  const list = new VirtualList({
    rows,
    row: messageRow,
    height,
    label: "Messages",
    scroller: ctx.main,
    onOpen: (message) => openMessage(id, message),
  });
  replace(ctx.main, page(id, rows, list));
  const refreshSoon = debounce(() => rows.refresh(...(list.visibleRange ?? [0, 0])), 400);
  ctx.onLive((event) => {
    if (event.type === "refresh" || (event.type === "session" && event.id === id)) refreshSoon();
  });
  ctx.onLeave(() => {
    refreshSoon.cancel();
    list.destroy();
    // Removed without closing: closing rewrites the address, and by now another view is shown.
    document.querySelector(".drawer")?.remove();
  });
  await rows.reset();
  if (message) openMessage(id, { id: message });
  return { onKey: (event) => (event.key === "Escape" && closeDrawer()) || list.key(event) };
}
