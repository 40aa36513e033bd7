// One session: its window over time, its compactions, its model calls.
import { debounce, h, replace } from "../base/dom.js";
import { ago, timeOfDay, count, dateTime, dollars, percent, short, whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visible } from "../base/text.js";
import { partBar } from "../charts/bars.js";
import { contentsList } from "../charts/contents.js";
import { FREE, occurringParts, swatch } from "../charts/parts.js";
import { Timeline } from "../charts/timeline.js";
import { get, meta, segment } from "../data/api.js";
import { PagedRows } from "../data/rows.js";
import { rewrite, to } from "../router.js";
import { copyButton, exportButton } from "../widgets/copy.js";
import { failureNotes } from "../widgets/failures.js";
import { jumpBox } from "../widgets/jump.js";
import { moneyCard } from "../widgets/money.js";
import { empty, loading } from "../widgets/states.js";
import { VirtualList } from "../widgets/virtual_list.js";
import { confirmUndo, planCards } from "./plans.js";
import { compareButton } from "./compare.js";
import { RegretsCard } from "./regrets.js";
import { drawPager } from "./calls_pager.js";
import { figures } from "./session_figures.js";
import { sessionTabs } from "./tabs.js";

function decision(session) {
  const failed = failureNotes(session.calls.at(-1)?.failures);
  if (failed.length || !session.decision?.reason) return failed;
  return h(
    "p",
    { class: "decision" },
    icon(session.decision.triggered ? "layers" : "check"),
    h("span", null, visible(session.decision.reason)),
  );
}

/** The legend of the timeline: the parts that occur in the session, each a switch, with its tokens in one call. */
class Legend {
  constructor(timeline) {
    this.timeline = timeline;
    this.values = new Map();
    this.el = h("div", { class: "legend", role: "group", "aria-label": "Parts of the prompt" });
  }

  /** Draw an item for each part that occurs, if another one does since the last time. */
  update(calls) {
    const parts = [...occurringParts(calls.map((call) => call.parts)), FREE];
    if (parts.map(({ key }) => key).join() === [...this.values.keys()].join()) return;
    this.values = new Map(parts.map(({ key }) => [key, h("span", { class: "legend-value num" }, "–")]));
    replace(
      this.el,
      parts.map((part) => this.item(part)),
    );
  }

  item({ key, name, meaning }) {
    const content = [swatch(key), h("span", null, name), this.values.get(key)];
    if (key === FREE.key) return h("span", { class: "legend-item", title: meaning }, content);
    const isHidden = this.timeline.hidden.has(key);
    const item = h(
      "button",
      {
        class: "legend-item",
        type: "button",
        "aria-pressed": String(!isHidden),
        title: `${meaning}: click to hide or show`,
      },
      content,
    );
    item.addEventListener("click", () => {
      const isOn = item.getAttribute("aria-pressed") === "true";
      item.setAttribute("aria-pressed", String(!isOn));
      this.timeline.hide(key, isOn);
    });
    return item;
  }

  show(call) {
    for (const [key, value] of this.values) value.textContent = call ? short(call.parts?.[key] ?? 0) : "–";
  }
}

function readout(id, call, limits) {
  if (!call) return [];
  return [
    h("b", null, `Call #${call.number}`),
    h("span", null, `turn ${call.turn}`),
    h("span", { title: dateTime(call.at) }, timeOfDay(call.at)),
    h("span", null, `${count(call.tokens, "token")}, ${percent(call.tokens, limits?.window)}`),
    call.reported ? h("span", { class: "dim" }, `${whole(call.reported)} reported`) : null,
    call.cost ? h("span", null, call.cost.usd === null ? "price not known" : dollars(call.cost.usd)) : null,
    h("span", null, call.plan_version ? `plan v${call.plan_version}` : "no plan"),
    h(
      "span",
      { class: "dim" },
      `${count(call.messages, "message")}${call.evicted ? `, ${whole(call.evicted)} left out` : ""}`,
    ),
    call.failures?.length ? h("span", { class: "badge is-error" }, icon("error"), "summary failed") : null,
    h("a", { class: "readout-open", href: to(["s", id, "c", call.number]) }, "Open prompt", icon("arrow")),
  ];
}

function callRow(id, limits) {
  return (call) => ({
    href: to(["s", id, "c", call.number]),
    class: "call-row",
    content: [
      h("span", { class: "num dim call-number" }, `#${call.number}`),
      partBar(call.parts, limits?.window),
      h("span", { class: "num" }, short(call.tokens)),
      h("span", { class: "num dim call-plan" }, call.plan_version ? `v${call.plan_version}` : "–"),
      h("span", { class: "num dim call-at", title: dateTime(call.at) }, timeOfDay(call.at)),
    ],
  });
}

class SessionPage {
  constructor(ctx, id, session, about, until) {
    Object.assign(this, { ctx, id, session, about, until });
    this.timeline = new Timeline({
      openCall: (number) => {
        location.hash = to(["s", id, "c", number]);
      },
      planHref: (version) => to(["s", id, "p", version]),
      onCursor: (call) => this.showCall(call),
    });
    this.legend = new Legend(this.timeline);
    this.readout = h("div", { class: "readout", role: "status", "aria-label": "Call under the cursor" });
    this.fill = h("div");
    this.calls = new PagedRows({ size: 200, key: (call) => call.number, load: (...page) => this.loadCalls(...page) });
    this.pager = h("div", { class: "pager" });
    this.list = new VirtualList({
      rows: this.calls,
      row: callRow(id, session.limits),
      height: () => 34,
      label: "Model calls, newest first",
    });
    this.top = h("div");
    this.regrets = new RegretsCard(ctx, id);
    this.plans = h("div", { class: "plan-list" });
    this.money = h("div");
    this.chart = h(
      "section",
      { class: "card chart-card", "aria-label": "Window timeline" },
      h(
        "div",
        { class: "card-head" },
        h("h2", null, "Window"),
        h("span", { class: "card-note" }, "tokens in each prompt; drag to zoom, click to open a call"),
        this.timeline.buttons,
      ),
      this.pager,
      this.legend.el,
      this.timeline.el,
      this.readout,
      this.fill,
    );
    this.emptyCard = h(
      "section",
      { class: "card", hidden: true },
      session.imported
        ? [
            empty({ title: "An imported log", text: "It has no model calls of its own here, and no cost." }),
            contentsList(id, session.imported, session.limits?.window),
          ]
        : empty({ title: "No model calls yet", text: "The timeline appears with the first prompt." }),
    );
  }

  showCall(call) {
    this.legend.show(call);
    replace(this.readout, readout(this.id, call, this.session.limits));
    replace(this.fill, call ? contentsList(this.id, call, this.session.limits?.window) : null);
  }

  async loadCalls(offset, limit) {
    const { total, calls } = await get(`/api/sessions/${segment(this.id)}/calls`, { offset, limit }, this.ctx.signal);
    return { total, rows: calls };
  }

  /** Show the calls up to one in the timeline; without one, the newest. */
  async showCallsUntil(until) {
    this.until = until;
    rewrite(["s", this.id], { until: until ?? "" });
    await this.reload().catch(() => {}); // the banner shows a failure
  }

  async reload() {
    this.session = await readSession(this.ctx, this.id, this.until);
    this.draw();
    await this.regrets.load();
  }

  head() {
    const { plans, updated_at: at } = this.session;
    const undo = plans.length ? undoButton(this.session, this.about, () => this.reload()) : null;
    return h(
      "div",
      { class: "page-head" },
      h("h1", { class: "mono" }, visible(this.id)),
      copyButton(this.id, { label: "", name: "Copy the session's id" }),
      h("span", { class: "count", title: dateTime(at) }, `active ${ago(at)}`),
      h("span", { class: "grow" }),
      compareButton({ a: this.id, b: "" }),
      exportButton(this.id),
      undo,
    );
  }

  draw() {
    const { calls } = this.session;
    replace(this.top, this.head(), sessionTabs(this.id, "timeline"), figures(this.session), decision(this.session));
    replace(this.plans, planCards(this.session, { readOnly: this.about.read_only, reload: () => this.reload() }));
    replace(this.money, moneyCard(this.session.cost));
    this.calls.refresh(...(this.list.visibleRange ?? [0, 0]));
    drawPager(this.pager, this.session, (until) => this.showCallsUntil(until));
    this.chart.hidden = !calls.length;
    this.emptyCard.hidden = calls.length > 0;
    this.legend.update(calls);
    this.timeline.update(this.session);
  }

  start() {
    const card = (title, note, content) =>
      h(
        "section",
        { class: "card", "aria-label": title },
        h("div", { class: "card-head" }, h("h2", null, title), h("span", { class: "card-note" }, note)),
        content,
      );
    replace(
      this.ctx.main,
      h(
        "div",
        { class: "page" },
        this.top,
        this.chart,
        this.emptyCard,
        this.money,
        this.regrets.el,
        h(
          "div",
          { class: "columns" },
          card("Compactions", "", this.plans),
          card("Model calls", "newest first", [jumpBox(this.id, this.session.calls_total), this.list.el]),
        ),
      ),
    );
    this.draw();
    // The banner shows a failure, and the next update tries again.
    this.regrets.load().catch(() => {});
    const reloadSoon = debounce(() => this.reload().catch(() => {}), 300);
    this.ctx.onLive((event) => {
      if (event.type === "refresh" || (event.type === "session" && event.id === this.id)) reloadSoon();
    });
    this.ctx.onLeave(() => {
      reloadSoon.cancel();
      this.timeline.destroy();
      this.list.destroy();
    });
  }
}

function undoButton(session, about, reload) {
  const isDisabled = session.plan_version === 0 || about.read_only;
  return h(
    "button",
    {
      class: "btn",
      type: "button",
      "data-undo": true,
      disabled: isDisabled,
      title: about.read_only ? "This viewer is read-only" : undefined,
      on: { click: () => confirmUndo(session, reload) },
    },
    icon("undo"),
    "Undo compaction",
  );
}

const readSession = (ctx, id, until) => get(`/api/sessions/${segment(id)}`, { until }, ctx.signal);

export async function sessionView(ctx, { session: id, params }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id }]);
  replace(ctx.main, h("div", { class: "page" }, sessionTabs(id, "timeline"), loading(8)));
  const until = Number(params.until) || undefined;
  const [session, about] = await Promise.all([readSession(ctx, id, until), meta()]);
  const page = new SessionPage(ctx, id, session, about, until);
  page.start();
  return { onKey: (event) => page.timeline.key(event) || page.list.key(event) };
}
