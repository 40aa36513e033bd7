// The plans of a session as cards, and the dialogs to undo and restore one.
import { h, replace } from "../base/dom.js";
import { ago, count, dateTime, percent, short, whole } from "../base/format.js";
import { ACTIONS, icon } from "../base/icons.js";
import { visible } from "../base/text.js";
import { actionBar, beforeAfter } from "../charts/bars.js";
import { get, post, segment } from "../data/api.js";
import { to } from "../router.js";
import { openDialog, toast } from "../widgets/dialog.js";
import { failureBadge } from "../widgets/failures.js";
import { compactionSaving } from "../widgets/money.js";

function actionCounts(actions) {
  return Object.keys(ACTIONS)
    .filter((key) => key !== "include" && actions[key])
    .map((key) => `${whole(actions[key])} ${ACTIONS[key].label}`)
    .join(" · ");
}

function card(session, plan, { readOnly, reload }) {
  const freed = plan.tokens_before - plan.tokens_after;
  const isRestored = plan.restored_from !== null;
  return h(
    "article",
    { class: `plan-card${plan.is_current ? " is-current" : ""}` },
    h(
      "a",
      {
        class: "plan-open",
        href: to(["s", session.id, "p", plan.version]),
        "aria-label": `Open compaction v${plan.version}`,
      },
      h(
        "div",
        { class: "plan-top" },
        h("span", { class: "plan-version" }, icon(isRestored ? "undo" : "layers"), `v${plan.version}`),
        plan.is_current && h("span", { class: "badge is-ok" }, icon("check"), "in force"),
        isRestored && h("span", { class: "badge" }, `restores v${plan.restored_from}`),
        failureBadge(plan.failures),
        h("span", { class: "grow" }),
        h("span", { class: "dim", title: dateTime(plan.at) }, ago(plan.at)),
      ),
      h(
        "div",
        { class: "plan-figures num" },
        h("b", null, short(plan.tokens_before)),
        icon("arrow"),
        h("b", null, short(plan.tokens_after)),
        h(
          "span",
          { class: "dim" },
          freed >= 0 ? `−${percent(freed, plan.tokens_before)}` : `+${percent(-freed, plan.tokens_before)}`,
        ),
        beforeAfter(plan.tokens_before, plan.tokens_after),
      ),
      actionBar(plan.actions ?? {}),
      h("div", { class: "dim plan-actions" }, actionCounts(plan.actions ?? {})),
      (plan.failures ?? []).map((failure) =>
        h("div", { class: "plan-failure" }, icon("error"), visible(failure.text)),
      ),
      compactionSaving(plan.cost),
      plan.reason && h("div", { class: "plan-reason" }, visible(plan.reason)),
    ),
    !plan.is_current &&
      h(
        "button",
        {
          class: "btn small ghost plan-restore",
          type: "button",
          disabled: readOnly,
          "data-restore": plan.version,
          on: { click: () => confirmRestore(session, plan, reload) },
        },
        icon("undo"),
        "Restore",
      ),
  );
}

export function planCards(session, options) {
  if (!session.plans.length) {
    const trigger = session.limits?.trigger;
    return h(
      "p",
      { class: "quiet" },
      trigger ? `Never compacted. It will be when a prompt reaches ${whole(trigger)} tokens.` : "Never compacted.",
    );
  }
  return [...session.plans].reverse().map((plan) => card(session, plan, options));
}

const REVERSIBLE = "The log does not change, and every plan stays in the list: this can be undone in the same way.";

/** Make the text of a dialog; what it comes to is computed by the server meanwhile. */
function effect(session, change, version) {
  const figures = h("div", { role: "status" }, h("p", { class: "dim" }, "Computing what that comes to…"));
  get(`/api/sessions/${segment(session.id)}/restore`, { version })
    .then((said) => replace(figures, outcome(said)))
    .catch((error) => replace(figures, h("p", { class: "warning" }, icon("warn"), error.message)));
  return [h("p", null, visible(change)), figures, h("p", { class: "dim" }, REVERSIBLE)];
}

/** Tell the tokens that will be there, and whether they stay. */
function outcome({ tokens, tokens_now: now, ceiling, trigger }) {
  const sizes = [
    "The prompt goes from ",
    h("b", null, whole(now)),
    " to ",
    h("b", null, count(tokens, "token")),
    ", as the log is now.",
  ];
  const isTooLarge = tokens > ceiling;
  const warning = `The next call will compact again: no more than ${whole(ceiling)} tokens fit.`;
  const stays =
    tokens >= trigger
      ? `It stays in force until ${whole(ceiling)} tokens are reached: room for ${whole(ceiling - tokens)} more.`
      : `It fits: the next compaction is at ${whole(ceiling)} tokens.`;
  return [
    h("p", null, sizes),
    isTooLarge ? h("p", { class: "warning" }, icon("warn"), warning) : h("p", null, stays),
    h("p", null, "The provider's cache is broken once."),
  ];
}

export function confirmUndo(session, reload) {
  const current = session.plans.find((plan) => plan.is_current) ?? session.plans.at(-1);
  const change =
    `In session ${session.id}, plan v${current.version} will no longer be in force. ` +
    "The session returns to the plan before it.";
  openDialog({
    title: "Undo the last compaction?",
    confirm: "Undo compaction",
    danger: true,
    body: effect(session, change),
    onConfirm: async () => {
      const done = await post(`/api/sessions/${segment(session.id)}/undo`, { version: current.version });
      toast(`Undone: plan v${done.plan_version} is in force, ${count(done.tokens, "token")}.`);
      await reload();
    },
  });
}

export function confirmRestore(session, plan, reload) {
  openDialog({
    title: `Restore plan v${plan.version}?`,
    confirm: `Restore v${plan.version}`,
    danger: true,
    body: effect(
      session,
      `In session ${session.id}, plan v${session.plan_version} will no longer be in force. ` +
        `A new plan with the content of v${plan.version} replaces it.`,
      plan.version,
    ),
    onConfirm: async () => {
      const body = { version: plan.version, from: session.plan_version };
      const done = await post(`/api/sessions/${segment(session.id)}/restore`, body);
      toast(`Restored: plan v${done.plan_version} is in force, ${count(done.tokens, "token")}.`);
      await reload();
    },
  });
}
