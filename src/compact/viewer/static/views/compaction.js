// One compaction: before and after side by side, why, at what price, and what it cost in facts.
import { get, meta, part } from "../api.js";
import { beforeAfter } from "../charts/bars.js";
import { h, replace } from "../dom.js";
import { closeDrawer, showMessage } from "../drawer.js";
import { count, moment, percent, whole } from "../format.js";
import { icon } from "../icons.js";
import { to } from "../router.js";
import { failed, loading } from "../states.js";
import { shown } from "../text.js";
import { Diff, PAGE } from "./diff.js";
import { economicsCard, reportCard, summaryCard } from "./findings.js";
import { confirmRestore } from "./plans.js";

function head(id, plan, session, readOnly, again) {
  const listed = session.plans.find((one) => one.version === plan.version);
  const isRestored = listed && listed.restored_from !== null;
  const versions = session.plans.map((one) => one.version);
  const step = (delta, name, label) => {
    const goal = versions[versions.indexOf(plan.version) + delta];
    return goal === undefined
      ? h("span", { class: "btn square ghost is-off", "aria-hidden": "true" }, icon(name))
      : h(
          "a",
          { class: "btn square ghost", href: to(["s", id, "p", goal]), title: label, "aria-label": label },
          icon(name),
        );
  };
  return h(
    "div",
    { class: "page-head" },
    h("h1", null, isRestored ? `Plan v${plan.version}` : `Compaction v${plan.version}`),
    listed?.is_current && h("span", { class: "badge is-ok" }, icon("check"), "in force"),
    isRestored ? h("span", { class: "badge" }, `restores v${listed.restored_from}`) : null,
    h("span", { class: "count" }, moment(plan.at)),
    h("span", { class: "grow" }),
    listed &&
      !listed.is_current &&
      h(
        "button",
        {
          class: "btn",
          type: "button",
          disabled: readOnly,
          "data-restore": plan.version,
          on: { click: () => confirmRestore(session, listed, again) },
        },
        icon("undo"),
        "Restore",
      ),
    step(-1, "left", "Previous compaction (←)"),
    step(1, "right", "Next compaction (→)"),
  );
}

function overviewCard(plan, session, id) {
  const freed = plan.tokens_before - plan.tokens_after;
  const call = session.plans.find((one) => one.version === plan.version)?.first_call;
  return h(
    "section",
    { class: "card", "aria-label": "Size" },
    h("div", { class: "card-head" }, h("h2", null, "Before and after")),
    h(
      "div",
      { class: "ba-figures" },
      h(
        "div",
        null,
        h("div", { class: "figure-value" }, whole(plan.tokens_before)),
        h("div", { class: "figure-name" }, `tokens before, ${count(plan.messages_before, "message")}`),
      ),
      icon("arrow"),
      h(
        "div",
        null,
        h("div", { class: "figure-value" }, whole(plan.tokens_after)),
        h("div", { class: "figure-name" }, `tokens after, ${count(plan.messages_after, "message")}`),
      ),
      h(
        "div",
        { class: "ba-delta" },
        freed >= 0 ? `−${percent(freed, plan.tokens_before)}` : `+${percent(-freed, plan.tokens_before)}`,
      ),
    ),
    beforeAfter(plan.tokens_before, plan.tokens_after),
    plan.reason && h("p", { class: "why-line" }, icon("question"), h("span", null, shown(plan.reason))),
    call
      ? h(
          "p",
          null,
          h(
            "a",
            { class: "readout-open", href: to(["s", id, "c", call]) },
            `Open the first prompt under it, call #${call}`,
            icon("arrow"),
          ),
        )
      : null,
  );
}

/** The report of a long log takes a while: the rest does not wait for it. */
function lateReport(id, ask) {
  const card = h(
    "section",
    { class: "card", "aria-label": "Loss report" },
    h("div", { class: "card-head" }, h("h2", null, "Loss report")),
    loading(4),
  );
  const open = (message) => showMessage(id, message);
  ask({ report: "only" })
    .then(({ report }) => card.replaceWith(reportCard(report, open)))
    .catch((error) => {
      if (error.name !== "AbortError") replace(card, failed(error));
    });
  return card;
}

function keysOf(event, { id, version, session, list }) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === "Escape") return closeDrawer();
  if (!step) return list.key(event);
  const versions = session.plans.map((one) => one.version);
  const goal = versions[versions.indexOf(version) + step];
  if (goal !== undefined) location.hash = to(["s", id, "p", goal]);
  return true;
}

export async function compactionView(ctx, { session: id, which, params }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id, href: to(["s", id]) }, { text: `v${which}` }]);
  replace(ctx.main, h("div", { class: "page" }, loading(9)));
  const only = params.only === "all" ? "all" : "changed";
  const ask = (wanted) =>
    get(`/api/sessions/${part(id)}/plans/${part(which)}`, { against: params.against, ...wanted }, ctx.signal);
  const [plan, session, about] = await Promise.all([
    ask({ offset: 0, limit: PAGE, only, report: "without" }),
    get(`/api/sessions/${part(id)}`, {}, ctx.signal),
    meta(),
  ]);
  const diff = new Diff(ctx, id, plan, only, ask);
  const again = () => {
    location.hash = to(["s", id]);
  };
  replace(
    ctx.main,
    h(
      "div",
      { class: "page" },
      head(id, plan, session, about.read_only, again),
      h("div", { class: "columns even" }, overviewCard(plan, session, id), economicsCard(plan)),
      h("div", { class: "columns even" }, summaryCard(plan.summary), lateReport(id, ask)),
      diff.card(params),
    ),
  );
  diff.source.changed();
  ctx.onEnd(() => {
    diff.list.destroy();
    closeDrawer();
  });
  return { keys: (event) => keysOf(event, { id, version: plan.version, session, list: diff.list }) };
}
