// One compaction: before and after, why, its price, its summary and what it lost.
import { h, replace } from "../base/dom.js";
import { count, dateTime, duration, percent, whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visible } from "../base/text.js";
import { beforeAfter } from "../charts/bars.js";
import { get, meta, segment } from "../data/api.js";
import { to } from "../router.js";
import { closeDrawer, showMessage } from "../widgets/drawer.js";
import { failureBadge, failureNotes } from "../widgets/failures.js";
import { failed, loading } from "../widgets/states.js";
import { priceCard, reportCard, summaryCard } from "./compaction_cards.js";
import { Diff, PAGE } from "./diff.js";
import { confirmRestore } from "./plans.js";

function head(id, plan, session, readOnly, onRestored) {
  const listed = session.plans.find(({ version }) => version === plan.version);
  const isRestored = listed && listed.restored_from !== null;
  const versions = session.plans.map(({ version }) => version);
  const stepButton = (delta, name, label) => {
    const target = versions[versions.indexOf(plan.version) + delta];
    return target === undefined
      ? h("span", { class: "btn square ghost is-off", "aria-hidden": "true" }, icon(name))
      : h(
          "a",
          { class: "btn square ghost", href: to(["s", id, "p", target]), title: label, "aria-label": label },
          icon(name),
        );
  };
  return h(
    "div",
    { class: "page-head" },
    h("h1", null, isRestored ? `Plan v${plan.version}` : `Compaction v${plan.version}`),
    listed?.is_current && h("span", { class: "badge is-ok" }, icon("check"), "in force"),
    failureBadge(plan.failures),
    isRestored ? h("span", { class: "badge" }, `restores v${listed.restored_from}`) : null,
    h("span", { class: "count" }, dateTime(plan.at)),
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
          on: { click: () => confirmRestore(session, listed, onRestored) },
        },
        icon("undo"),
        "Restore",
      ),
    stepButton(-1, "left", "Previous compaction (←)"),
    stepButton(1, "right", "Next compaction (→)"),
  );
}

/** Who wrote the summary, what that took, and how long the compaction did; with the way to its trace. */
function madeBy(plan) {
  const writing = plan.summary?.writing;
  const isNew = plan.cost?.summary || !writing?.calls;
  const bill = plan.cost?.summary;
  const facts = [
    plan.seconds === null ? null : `took ${duration(1000 * plan.seconds)}`,
    plan.summary ? null : "no summary was needed",
    writing && (writing.instead_of ? `code stands in for ${writing.instead_of}` : `summary by ${writing.summarizer}`),
    writing?.from_cache ? "written before, of the very same" : null,
    bill && isNew && (bill.calls || bill.is_estimate)
      ? `${count(bill.calls, "call")}, ${whole(bill.input_tokens)} tokens in, ${whole(bill.output_tokens)} out${bill.is_estimate ? ", estimated" : ""}, ${duration(1000 * bill.seconds)}`
      : null,
  ].filter(Boolean);
  return h(
    "p",
    { class: "made-by dim" },
    visible(facts.join(" · ")),
    " ",
    plan.trace &&
      h(
        "a",
        {
          class: "readout-open",
          "data-trace": plan.trace.span_id,
          href: to(["t", plan.trace.trace_id], { span: plan.trace.span_id, before: plan.trace.before }),
        },
        "Its trace",
        icon("arrow"),
      ),
  );
}

function sizeCard(plan, session, id) {
  const freed = plan.tokens_before - plan.tokens_after;
  const call = session.plans.find(({ version }) => version === plan.version)?.first_call;
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
    madeBy(plan),
    plan.reason && h("p", { class: "why-line" }, icon("question"), h("span", null, visible(plan.reason))),
    call
      ? h(
          "p",
          null,
          h(
            "a",
            { class: "readout-open", href: to(["s", id, "c", call]) },
            `Open the first prompt after it, call #${call}`,
            icon("arrow"),
          ),
        )
      : null,
  );
}

/** Make the card of the loss report, which is filled later: for a long log it takes a while. */
function lossReportCard(id, request) {
  const card = h(
    "section",
    { class: "card", "aria-label": "Loss report" },
    h("div", { class: "card-head" }, h("h2", null, "Loss report")),
    loading(4),
  );
  const open = (message) => showMessage(id, message);
  request({ report: "only" })
    .then(({ report }) => card.replaceWith(reportCard(report, open)))
    .catch((error) => {
      if (error.name !== "AbortError") replace(card, failed(error));
    });
  return card;
}

function handleKey(event, { id, version, session, list }) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === "Escape") return closeDrawer();
  if (!step) return list.key(event);
  const versions = session.plans.map(({ version }) => version);
  const target = versions[versions.indexOf(version) + step];
  if (target !== undefined) location.hash = to(["s", id, "p", target]);
  return true;
}

export async function compactionView(ctx, { session: id, which, params }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id, href: to(["s", id]) }, { text: `v${which}` }]);
  replace(ctx.main, h("div", { class: "page" }, loading(9)));
  const only = params.only === "all" ? "all" : "changed";
  const request = (query) =>
    get(`/api/sessions/${segment(id)}/plans/${segment(which)}`, { against: params.against, ...query }, ctx.signal);
  const [plan, session, about] = await Promise.all([
    request({ offset: 0, limit: PAGE, only, report: "without" }),
    get(`/api/sessions/${segment(id)}`, {}, ctx.signal),
    meta(),
  ]);
  const diff = new Diff(ctx, id, plan, only, request);
  const showSession = () => {
    location.hash = to(["s", id]);
  };
  replace(
    ctx.main,
    h(
      "div",
      { class: "page" },
      head(id, plan, session, about.read_only, showSession),
      failureNotes(plan.failures),
      diff.card(params),
      h("div", { class: "columns even" }, sizeCard(plan, session, id), priceCard(plan)),
      plan.summary
        ? h("div", { class: "columns even" }, lossReportCard(id, request), summaryCard(plan.summary))
        : lossReportCard(id, request),
    ),
  );
  diff.rows.notify();
  ctx.onLeave(() => {
    diff.list.destroy();
    closeDrawer();
  });
  return { onKey: (event) => handleKey(event, { id, version: plan.version, session, list: diff.list }) };
}
