// All sessions: how full each window is, what was compacted, what went wrong.
import { get } from "../api.js";
import { meter } from "../charts/bars.js";
import { spark } from "../charts/spark.js";
import { debounce, h, isNarrow, replace } from "../dom.js";
import { ago, count, moment, percent, short, whole } from "../format.js";
import { icon } from "../icons.js";
import { rewrite, to } from "../router.js";
import { PagedSource } from "../source.js";
import { empty, failed, loading } from "../states.js";
import { plain, shown } from "../text.js";
import { VirtualList } from "../virtual.js";

const STATES = [
  ["all", "All"],
  ["compacted", "Compacted"],
  ["never", "Never compacted"],
  ["loss", "With losses"],
  ["errors", "With errors"],
];
const SORTS = [
  ["updated", "Last active"],
  ["tokens", "Most tokens"],
  ["messages", "Most messages"],
];

function badges(one) {
  return [
    one.has_error &&
      h("span", { class: "badge is-error", title: "Something went wrong in this session" }, icon("error"), "error"),
    one.has_loss && h("span", { class: "badge is-warn", title: "A compaction lost facts" }, icon("warn"), "loss"),
  ];
}

function sessionRow(one) {
  const content = [
    h(
      "span",
      { class: "cell name" },
      h("span", {
        class: `dot ${one.is_live ? "is-live" : ""}`,
        role: "img",
        "aria-label": one.is_live ? "live" : "quiet",
      }),
      h("span", { class: "mono clip", title: plain(one.id) }, shown(one.id)),
      h("span", { class: "badges" }, badges(one)),
    ),
    h(
      "span",
      { class: "cell sparkcell" },
      spark(one.spark ?? [], { window: one.window_tokens, trigger: one.trigger_tokens }),
    ),
    h(
      "span",
      { class: "cell use" },
      meter(one.last_tokens, one.window_tokens, one.trigger_tokens),
      h(
        "span",
        { class: "num" },
        h("b", null, short(one.last_tokens)),
        h("span", { class: "dim" }, ` / ${short(one.window_tokens)} · ${percent(one.last_tokens, one.window_tokens)}`),
      ),
    ),
    h(
      "span",
      { class: "cell num figure", title: "messages" },
      whole(one.messages),
      h("span", { class: "unit" }, " msgs"),
    ),
    h(
      "span",
      { class: "cell num figure", title: "model calls" },
      whole(one.calls),
      h("span", { class: "unit" }, " calls"),
    ),
    h(
      "span",
      { class: "cell num figure compactions", title: "compactions" },
      one.compactions ? [icon("layers"), one.compactions] : h("span", { class: "faint" }, "–"),
    ),
    h("span", { class: "cell num when", title: moment(one.updated_at) }, ago(one.updated_at)),
  ];
  return { href: to(["s", one.id]), content, class: "session-row" };
}

function filters(state, apply) {
  const input = h("input", {
    type: "search",
    placeholder: "Search ids and words in the log",
    "aria-label": "Search sessions",
    value: state.q,
    autocomplete: "off",
    spellcheck: "false",
  });
  const typed = debounce(() => apply({ q: input.value.trim() }), 220);
  input.addEventListener("input", typed);
  const chips = h("div", { class: "segments", role: "radiogroup", "aria-label": "Filter" });
  const draw = () =>
    replace(
      chips,
      STATES.map(([key, text]) =>
        h(
          "button",
          {
            type: "button",
            role: "radio",
            class: "segment",
            "aria-checked": String(state.state === key),
            on: {
              click: () => {
                apply({ state: key });
                draw();
              },
            },
          },
          text,
        ),
      ),
    );
  draw();
  const sort = h(
    "select",
    { "aria-label": "Sort by" },
    SORTS.map(([key, text]) => h("option", { value: key, selected: state.sort === key }, text)),
  );
  sort.value = state.sort;
  sort.addEventListener("change", () => apply({ sort: sort.value }));
  return h(
    "div",
    { class: "toolbar" },
    h("label", { class: "search" }, icon("search"), input, h("kbd", { class: "hint" }, "/")),
    chips,
    h("label", { class: "select" }, sort),
  );
}

function nothing(state) {
  if (state.q || state.state !== "all") {
    return empty({ title: "No session matches", text: "Try other words, or another filter.", picture: "search" });
  }
  return empty({
    title: "No sessions yet",
    text: "Sessions appear here as soon as an agent makes its first call. To see one now, run the demo:",
    command: "compact demo",
  });
}

const HEADS = ["Session", "Window over time", "Now in the window", "Messages", "Calls", "Compactions", "Last active"];
const TICK_MS = 30_000;

class SessionsPage {
  constructor(ctx, params) {
    this.ctx = ctx;
    this.state = { q: params.q ?? "", state: params.state ?? "all", sort: params.sort ?? "updated" };
    this.source = new PagedSource({ size: 50, load: (offset, limit) => this.load(offset, limit) });
    this.list = new VirtualList({
      source: this.source,
      row: sessionRow,
      height: () => (isNarrow() ? 92 : 56),
      label: "Sessions",
      scroller: ctx.main,
    });
    this.total = h("span", { class: "count", role: "status" });
    this.note = h("div", null, loading());
    this.heads = h(
      "div",
      { class: "session-heads", "aria-hidden": "true", hidden: true },
      HEADS.map((text) => h("span", null, text)),
    );
    this.source.watch(() => this.told());
    this.source.onError = (error) =>
      this.show(
        failed(error, () => this.source.reset()),
        false,
      );
  }

  async load(offset, limit) {
    const { total, pending, sessions } = await get("/api/sessions", { ...this.state, offset, limit }, this.ctx.signal);
    this.pending = pending ?? 0;
    return { total, rows: sessions };
  }

  told() {
    const rest = this.pending && this.state.state === "loss" ? `, ${whole(this.pending)} still being checked` : "";
    replace(this.total, count(this.source.total, "session"), rest);
    this.show(this.source.total ? null : nothing(this.state), this.source.total > 0);
  }

  show(note, hasRows) {
    replace(this.note, note);
    this.heads.hidden = this.list.el.hidden = !hasRows;
  }

  /** Ask for other rows, and write that into the address. */
  apply(changes) {
    Object.assign(this.state, changes);
    const { q, state, sort } = this.state;
    rewrite([], { q, state: state === "all" ? "" : state, sort: sort === "updated" ? "" : sort });
    this.ctx.main.scrollTop = 0;
    this.source.reset();
  }

  start() {
    replace(
      this.ctx.main,
      h(
        "div",
        { class: "page" },
        h("div", { class: "page-head" }, h("h1", null, "Sessions"), this.total),
        filters(this.state, (changes) => this.apply(changes)),
        this.heads,
        this.list.el,
        this.note,
      ),
    );
    const again = debounce(() => this.source.refresh(...(this.list.span ?? [0, 0])), 400);
    this.ctx.onLive((event) => {
      if (["session", "gone", "refresh"].includes(event.type)) again();
    });
    const tick = setInterval(() => this.list.redraw(), TICK_MS); // "2m ago" grows older by itself
    this.ctx.onEnd(() => {
      clearInterval(tick);
      again.cancel();
      this.list.destroy();
    });
    return this.source.reset();
  }
}

export async function sessionsView(ctx, { params }) {
  ctx.crumbs([{ text: "Sessions" }]);
  const page = new SessionsPage(ctx, params);
  await page.start();
  return { keys: (event) => page.list.key(event) };
}
