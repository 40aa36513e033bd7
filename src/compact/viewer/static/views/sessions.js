// The list of sessions: how full each window is, what was compacted, what went wrong.
import { debounce, h, isNarrow, replace } from "../base/dom.js";
import { ago, count, dateTime, dollars, percent, short, whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visibleText, visible } from "../base/text.js";
import { meter } from "../charts/bars.js";
import { sparkline } from "../charts/sparkline.js";
import { get } from "../data/api.js";
import { PagedRows } from "../data/rows.js";
import { rewrite, to } from "../router.js";
import { empty, failed, loading } from "../widgets/states.js";
import { VirtualList } from "../widgets/virtual_list.js";

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

function badges(session) {
  return [
    session.failures?.length
      ? h(
          "span",
          { class: "badge is-error", title: visibleText(session.failures.join("\n")) },
          icon("error"),
          count(session.failures.length, "failure"),
        )
      : null,
    session.has_error &&
      !session.failures?.length &&
      h("span", { class: "badge is-error", title: "An event of this session is an error" }, icon("error"), "error"),
    session.has_loss && h("span", { class: "badge is-warn", title: "A compaction lost facts" }, icon("warn"), "loss"),
  ];
}

/** What a session cost, over what compaction saved in it; dashes until it is known that there is a price. */
function moneyCell(cost) {
  if (!cost) return h("span", { class: "cell num money" }, h("span", { class: "faint" }, "…"));
  if (cost.usd === null)
    return h("span", { class: "cell money faint", title: "The price of its model is not known" }, "price not known");
  const saved = cost.usd_saved >= 0 ? `${dollars(cost.usd_saved)} saved` : `${dollars(-cost.usd_saved)} more`;
  return h(
    "span",
    { class: "cell num money", title: visibleText(cost.models.join(", ")) },
    h("b", null, dollars(cost.usd)),
    h("span", { class: "dim" }, saved),
  );
}

function sessionRow(session) {
  const content = [
    h(
      "span",
      { class: "cell name" },
      h("span", {
        class: `dot ${session.is_live ? "is-live" : ""}`,
        role: "img",
        "aria-label": session.is_live ? "live" : "quiet",
      }),
      h("span", { class: "mono clip", title: visibleText(session.id) }, visible(session.id)),
      h("span", { class: "badges" }, badges(session)),
    ),
    h(
      "span",
      { class: "cell sparkcell" },
      sparkline(session.spark ?? [], { window: session.window_tokens, trigger: session.trigger_tokens }),
    ),
    h(
      "span",
      { class: "cell use" },
      meter(session.last_tokens, session.window_tokens, session.trigger_tokens),
      h(
        "span",
        { class: "num" },
        h("b", null, short(session.last_tokens)),
        h(
          "span",
          { class: "dim" },
          ` / ${short(session.window_tokens)} · ${percent(session.last_tokens, session.window_tokens)}`,
        ),
      ),
    ),
    h(
      "span",
      { class: "cell num figure", title: "messages" },
      whole(session.messages),
      h("span", { class: "unit" }, " msgs"),
    ),
    h(
      "span",
      { class: "cell num figure", title: "model calls" },
      whole(session.calls),
      h("span", { class: "unit" }, " calls"),
    ),
    h(
      "span",
      { class: "cell num figure compactions", title: "compactions" },
      session.compactions
        ? [icon("layers"), whole(session.compactions)]
        : h("span", { class: "faint" }, session.compactions === null ? "…" : "–"),
    ),
    moneyCell(session.cost),
    h("span", { class: "cell num when", title: dateTime(session.updated_at) }, ago(session.updated_at)),
  ];
  return { href: to(["s", session.id]), content, class: "session-row" };
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
  const applySoon = debounce(() => apply({ q: input.value.trim() }), 220);
  input.addEventListener("input", applySoon);
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

function emptyState(state) {
  if (state.q || state.state !== "all") {
    return empty({ title: "No session matches", text: "Try other words, or another filter.", iconName: "search" });
  }
  return empty({
    title: "No sessions yet",
    text: "Sessions appear here as soon as an agent makes its first call. To see one now, run the demo:",
    command: "compact demo",
  });
}

const COLUMNS = ["Session", "Window over time", "Now in the window", "Messages", "Calls", "Compactions", "Cost", "Last active"];
const TICK_MS = 30_000;

class SessionsPage {
  constructor(ctx, params) {
    this.ctx = ctx;
    this.state = { q: params.q ?? "", state: params.state ?? "all", sort: params.sort ?? "updated" };
    this.rows = new PagedRows({ size: 50, load: (offset, limit) => this.load(offset, limit) });
    this.list = new VirtualList({
      rows: this.rows,
      row: sessionRow,
      height: () => (isNarrow() ? 92 : 56),
      label: "Sessions",
      scroller: ctx.main,
    });
    this.total = h("span", { class: "count", role: "status" });
    // By the first row of each page that was loaded.
    this.costs = new Map();
    this.note = h("div", null, loading());
    this.heads = h(
      "div",
      { class: "session-heads", "aria-hidden": "true", hidden: true },
      COLUMNS.map((text) => h("span", null, text)),
    );
    this.rows.onChange(() => this.update());
    this.rows.onError = (error) =>
      this.show(
        failed(error, () => this.rows.reset()),
        false,
      );
  }

  async load(offset, limit) {
    const answer = await get("/api/sessions", { ...this.state, offset, limit }, this.ctx.signal);
    const { total, pending, sessions, cost } = answer;
    this.pending = pending ?? 0;
    this.costs.set(offset, cost);
    return { total, rows: sessions };
  }

  update() {
    const rest = this.pending && this.state.state === "loss" ? `, ${whole(this.pending)} still being checked` : "";
    replace(this.total, count(this.rows.total, "session"), rest, this.money());
    this.show(this.rows.total ? null : emptyState(this.state), this.rows.total > 0);
  }

  /** Return the sums of the sessions that are listed, as far as they are known. */
  money() {
    const known = [...this.costs.values()].filter((cost) => cost && cost.usd !== null);
    if (!known.length) return "";
    const sum = (key) => known.reduce((all, cost) => all + cost[key], 0);
    const rest = [...this.costs.values()].reduce((all, cost) => all + (cost?.unpriced ?? 0), 0);
    const saved = sum("usd_saved");
    const told = saved >= 0 ? `${dollars(saved)} saved` : `${dollars(-saved)} more than without compaction`;
    const without = rest ? `, without ${count(rest, "session")} of unknown price` : "";
    return ` · ${dollars(sum("usd"))} spent, ${told}${without}`;
  }

  show(note, hasRows) {
    replace(this.note, note);
    this.heads.hidden = this.list.el.hidden = !hasRows;
  }

  /** Request other rows, and write the query into the address. */
  apply(changes) {
    Object.assign(this.state, changes);
    const { q, state, sort } = this.state;
    rewrite([], { q, state: state === "all" ? "" : state, sort: sort === "updated" ? "" : sort });
    this.ctx.main.scrollTop = 0;
    this.costs.clear();
    this.rows.reset();
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
    const refreshSoon = debounce(() => this.rows.refresh(...(this.list.visibleRange ?? [0, 0])), 400);
    this.ctx.onLive((event) => {
      if (["session", "deleted", "refresh"].includes(event.type)) refreshSoon();
    });
    const tick = setInterval(() => this.list.redraw(), TICK_MS); // "2m ago" becomes "3m ago"
    this.ctx.onLeave(() => {
      clearInterval(tick);
      refreshSoon.cancel();
      this.list.destroy();
    });
    return this.rows.reset();
  }
}

export async function sessionsView(ctx, { params }) {
  ctx.crumbs([{ text: "Sessions" }]);
  const page = new SessionsPage(ctx, params);
  await page.start();
  return { onKey: (event) => page.list.key(event) };
}
