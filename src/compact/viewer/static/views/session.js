// One session: its window over time, its compactions, its calls.
import { get, meta, part } from "../api.js";
import { meter, partBar } from "../charts/bars.js";
import { swatch, PARTS, MEANING } from "../charts/patterns.js";
import { Timeline } from "../charts/timeline.js";
import { debounce, h, replace } from "../dom.js";
import { ago, clock, count, moment, percent, short, whole } from "../format.js";
import { icon } from "../icons.js";
import { to } from "../router.js";
import { ArraySource } from "../source.js";
import { empty, loading } from "../states.js";
import { shown } from "../text.js";
import { VirtualList } from "../virtual.js";
import { confirmUndo, planCards } from "./plans.js";
import { sessionTabs } from "./tabs.js";

function figures(session) {
  const last = session.calls.at(-1);
  const { window: limit, trigger } = session.limits ?? {};
  const figure = (value, name, extra) =>
    h(
      "div",
      { class: "figure-box" },
      h("div", { class: "figure-value" }, value),
      h("div", { class: "figure-name" }, name),
      extra,
    );
  return h(
    "div",
    { class: "figures" },
    figure(
      [short(last?.tokens ?? 0), h("span", { class: "dim" }, ` / ${short(limit)}`)],
      `in the window, ${percent(last?.tokens ?? 0, limit)}`,
      meter(last?.tokens ?? 0, limit, trigger),
    ),
    figure(whole(session.messages), "messages"),
    figure(whole(session.turns), "turns"),
    figure(whole(session.calls_total ?? session.calls.length), "model calls"),
    figure(whole(session.plans.filter((plan) => plan.restored_from === null).length), "compactions"),
    figure(session.plan_version ? `v${session.plan_version}` : "–", "plan in force"),
  );
}

function decision(session) {
  if (!session.decision?.reason) return null;
  return h(
    "p",
    { class: "decision" },
    icon(session.decision.triggered ? "layers" : "check"),
    h("span", null, shown(session.decision.reason)),
  );
}

function legend(timeline) {
  const values = new Map();
  const items = [...PARTS, { key: "free", name: "Free" }].map(({ key, name }) => {
    const value = h("span", { class: "legend-value num" }, "–");
    values.set(key, value);
    const content = [swatch(key), h("span", null, name), value];
    if (key === "free") return h("span", { class: "legend-item", title: MEANING[key] }, content);
    const item = h(
      "button",
      { class: "legend-item", type: "button", "aria-pressed": "true", title: `${MEANING[key]}: click to hide` },
      content,
    );
    item.addEventListener("click", () => {
      const isOff = item.getAttribute("aria-pressed") === "true";
      item.setAttribute("aria-pressed", String(!isOff));
      timeline.hide(key, isOff);
    });
    return item;
  });
  const el = h("div", { class: "legend", role: "group", "aria-label": "Parts of the prompt" }, items);
  return {
    el,
    show: (call) =>
      values.forEach((node, key) => {
        node.textContent = call ? short(call.parts?.[key] ?? 0) : "–";
      }),
  };
}

function readout(id, call, limits) {
  if (!call) return [];
  return [
    h("b", null, `Call #${call.number}`),
    h("span", null, `turn ${call.turn}`),
    h("span", { title: moment(call.at) }, clock(call.at)),
    h("span", null, `${whole(call.tokens)} tokens, ${percent(call.tokens, limits?.window)}`),
    call.reported ? h("span", { class: "dim" }, `${whole(call.reported)} reported`) : null,
    h("span", null, call.plan_version ? `plan v${call.plan_version}` : "no plan"),
    h(
      "span",
      { class: "dim" },
      `${count(call.messages, "message")}${call.evicted ? `, ${whole(call.evicted)} left out` : ""}`,
    ),
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
      h("span", { class: "num dim call-at", title: moment(call.at) }, clock(call.at)),
    ],
  });
}

class SessionPage {
  constructor(ctx, id, session, about) {
    Object.assign(this, { ctx, id, session, about });
    this.timeline = new Timeline({
      openCall: (number) => {
        location.hash = to(["s", id, "c", number]);
      },
      planHref: (version) => to(["s", id, "p", version]),
      onCursor: (call) => this.pointed(call),
    });
    this.legend = legend(this.timeline);
    this.told = h("div", { class: "readout", role: "status", "aria-label": "Call under the cursor" });
    this.calls = new ArraySource((call) => call.number);
    this.list = new VirtualList({
      source: this.calls,
      row: callRow(id, session.limits),
      height: () => 34,
      label: "Model calls, newest first",
    });
    this.top = h("div");
    this.plans = h("div", { class: "plan-list" });
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
      this.legend.el,
      this.timeline.el,
      this.told,
    );
    this.none = h(
      "section",
      { class: "card", hidden: true },
      empty({ title: "No model calls yet", text: "The window is drawn as soon as the first prompt goes out." }),
    );
  }

  pointed(call) {
    this.legend.show(call);
    replace(this.told, readout(this.id, call, this.session.limits));
  }

  async again() {
    this.session = await readSession(this.ctx, this.id);
    this.draw();
  }

  head() {
    const { plans, updated_at: at } = this.session;
    const undo = plans.length ? undoButton(this.session, this.about, () => this.again()) : null;
    return h(
      "div",
      { class: "page-head" },
      h("h1", { class: "mono" }, shown(this.id)),
      h("span", { class: "count", title: moment(at) }, `active ${ago(at)}`),
      h("span", { class: "grow" }),
      undo,
    );
  }

  draw() {
    const { calls } = this.session;
    replace(this.top, this.head(), sessionTabs(this.id, "timeline"), figures(this.session), decision(this.session));
    replace(this.plans, planCards(this.session, { readOnly: this.about.read_only, again: () => this.again() }));
    this.calls.set([...calls].reverse());
    this.chart.hidden = !calls.length;
    this.none.hidden = calls.length > 0;
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
        this.none,
        h(
          "div",
          { class: "columns" },
          card("Compactions", "", this.plans),
          card("Model calls", "newest first", this.list.el),
        ),
      ),
    );
    this.draw();
    const soon = debounce(() => this.again().catch(() => {}), 300); // a failure shows in the banner, the next event tries again
    this.ctx.onLive((event) => {
      if (event.type === "refresh" || (event.type === "session" && event.id === this.id)) soon();
    });
    this.ctx.onEnd(() => {
      soon.cancel();
      this.timeline.destroy();
      this.list.destroy();
    });
  }
}

function undoButton(session, about, again) {
  const isOff = session.plan_version === 0 || about.read_only;
  return h(
    "button",
    {
      class: "btn",
      type: "button",
      "data-undo": true,
      disabled: isOff,
      title: about.read_only ? "This viewer only reads" : undefined,
      on: { click: () => confirmUndo(session, again) },
    },
    icon("undo"),
    "Undo compaction",
  );
}

const readSession = (ctx, id) => get(`/api/sessions/${part(id)}`, {}, ctx.signal);

export async function sessionView(ctx, { session: id }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id }]);
  replace(ctx.main, h("div", { class: "page" }, sessionTabs(id, "timeline"), loading(8)));
  const [session, about] = await Promise.all([readSession(ctx, id), meta()]);
  const page = new SessionPage(ctx, id, session, about);
  page.start();
  return { keys: (event) => page.timeline.key(event) || page.list.key(event) };
}
