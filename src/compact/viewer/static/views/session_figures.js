// The figures at the top of a session: its window, how much of everything there is, and what it cost and saved.
import { h } from "../base/dom.js";
import { dollars, percent, short, whole } from "../base/format.js";
import { meter } from "../charts/bars.js";

export function figures(session) {
  const tokens = session.calls.at(-1)?.tokens ?? session.imported?.tokens ?? 0;
  const { cost } = session;
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
      [short(tokens), h("span", { class: "dim" }, ` / ${short(limit)}`)],
      `in the window, ${percent(tokens, limit)}`,
      meter(tokens, limit, trigger),
    ),
    figure(whole(session.messages), "messages"),
    figure(whole(session.turns), "turns"),
    figure(whole(session.calls_total ?? session.calls.length), "model calls"),
    figure(whole(session.plans.filter((plan) => plan.restored_from === null).length), "compactions"),
    figure(session.plan_version ? `v${session.plan_version}` : "–", "plan in force"),
    cost?.usd ? figure(dollars(cost.usd), "cost so far") : null,
    cost?.usd && cost.usd_saved > 0 ? figure(dollars(cost.usd_saved), "saved") : null,
  );
}
