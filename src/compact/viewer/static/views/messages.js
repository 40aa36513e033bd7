// The log of a session: every message, and what became of it.
import { get, part } from "../api.js";
import { roleTag } from "../content.js";
import { closeDrawer, showMessage } from "../drawer.js";
import { debounce, h, isNarrow, replace } from "../dom.js";
import { count, whole } from "../format.js";
import { actionChip } from "../icons.js";
import { rewrite, to } from "../router.js";
import { PagedSource } from "../source.js";
import { empty, failed, loading } from "../states.js";
import { oneLine, shown } from "../text.js";
import { VirtualList } from "../virtual.js";
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

const HEADS = ["#", "Role", "Text", "Now", "Tokens"];

function sourceOf(ctx, id) {
  const load = async (offset, limit) => {
    const { total, messages } = await get(`/api/sessions/${part(id)}/messages`, { offset, limit }, ctx.signal);
    return { total, rows: messages };
  };
  return new PagedSource({ size: 200, load });
}

function openMessage(id, one) {
  rewrite(["s", id, "m", one.id]);
  showMessage(id, one.id, { onClose: () => rewrite(["s", id, "messages"]) });
}

function frame(id, source, list) {
  const total = h("span", { class: "count", role: "status" });
  const note = h("div", null, loading(10));
  source.watch(() => {
    replace(total, count(source.total, "message"));
    replace(note, source.total ? null : empty({ title: "No messages", text: "The log of this session is empty." }));
  });
  source.onError = (error) =>
    replace(
      note,
      failed(error, () => source.reset()),
    );
  const heads = h(
    "div",
    { class: "message-heads", "aria-hidden": "true" },
    HEADS.map((text) => h("span", null, text)),
  );
  const head = h("div", { class: "page-head" }, h("h1", { class: "mono" }, shown(id)), total);
  return h("div", { class: "page" }, head, sessionTabs(id, "messages"), heads, list.el, note);
}

export async function messagesView(ctx, { session: id, message }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id, href: to(["s", id]) }, { text: "messages" }]);
  const source = sourceOf(ctx, id);
  const height = () => (isNarrow() ? 66 : 40);
  const list = new VirtualList({
    source,
    row: messageRow,
    height,
    label: "Messages",
    scroller: ctx.main,
    onOpen: (one) => openMessage(id, one),
  });
  replace(ctx.main, frame(id, source, list));
  const soon = debounce(() => source.refresh(...(list.span ?? [0, 0])), 400);
  ctx.onLive((event) => {
    if (event.type === "refresh" || (event.type === "session" && event.id === id)) soon();
  });
  ctx.onEnd(() => {
    soon.cancel();
    list.destroy();
    // Not closed but taken away: closing rewrites the address, and by now another view is in front.
    document.querySelector(".drawer")?.remove();
  });
  await source.reset();
  if (message) openMessage(id, { id: message });
  return { keys: (event) => (event.key === "Escape" && closeDrawer()) || list.key(event) };
}
