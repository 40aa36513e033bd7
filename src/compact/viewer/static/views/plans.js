// Compactions of a session as cards, and taking one back.
import { part, post } from "../api.js";
import { actionBar, beforeAfter } from "../charts/bars.js";
import { openDialog, toast } from "../dialog.js";
import { h } from "../dom.js";
import { ago, count, moment, percent, short, whole } from "../format.js";
import { ACTIONS, icon } from "../icons.js";
import { to } from "../router.js";
import { shown } from "../text.js";

function told(actions) {
  return Object.keys(ACTIONS)
    .filter((key) => key !== "include" && actions[key])
    .map((key) => `${whole(actions[key])} ${ACTIONS[key].word}`)
    .join(" · ");
}

function card(session, plan, { readOnly, again }) {
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
        h("span", { class: "grow" }),
        h("span", { class: "dim", title: moment(plan.at) }, ago(plan.at)),
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
      h("div", { class: "dim plan-told" }, told(plan.actions ?? {})),
      plan.reason && h("div", { class: "plan-reason" }, shown(plan.reason)),
    ),
    !plan.is_current &&
      h(
        "button",
        {
          class: "btn small ghost plan-restore",
          type: "button",
          disabled: readOnly,
          "data-restore": plan.version,
          on: { click: () => confirmRestore(session, plan, again) },
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

const KEPT = "The log is not touched, and every plan stays in the list: this can be taken back in the same way.";

function effect(from, goal) {
  return [
    h("p", null, shown(from), h("b", null, goal), "."),
    h(
      "p",
      null,
      "The next model call is sent the prompt of that plan, if it fits the budget; the cached prefix breaks once.",
    ),
    h("p", { class: "dim" }, KEPT),
  ];
}

export function confirmUndo(session, again) {
  const current = session.plans.find((plan) => plan.is_current) ?? session.plans.at(-1);
  const before = `plan v${current.version} stops being in force. The session goes back to the plan before it: from about ${whole(current.tokens_after)} to `;
  openDialog({
    title: "Undo the last compaction?",
    confirm: "Undo compaction",
    danger: true,
    body: effect(`In session ${session.id}, ${before}`, `${whole(current.tokens_before)} tokens`),
    onConfirm: async () => {
      const done = await post(`/api/sessions/${part(session.id)}/undo`, { version: current.version });
      toast(`Undone: plan v${done.plan_version} is in force, ${count(done.tokens, "token")}.`);
      await again();
    },
  });
}

export function confirmRestore(session, plan, again) {
  openDialog({
    title: `Restore plan v${plan.version}?`,
    confirm: `Restore v${plan.version}`,
    danger: true,
    body: effect(
      `In session ${session.id}, plan v${session.plan_version} stops being in force. A new plan with the content of v${plan.version} takes its place: it left `,
      `${whole(plan.tokens_after)} tokens when it was made`,
    ),
    onConfirm: async () => {
      const asked = { version: plan.version, from: session.plan_version };
      const done = await post(`/api/sessions/${part(session.id)}/restore`, asked);
      toast(`Restored: plan v${done.plan_version} is in force, ${count(done.tokens, "token")}.`);
      await again();
    },
  });
}
