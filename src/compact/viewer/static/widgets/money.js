// What something cost and saved, in words and figures; a price that is not known is said to be so.
import { h } from "../base/dom.js";
import { count, dollars, percent, whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visible } from "../base/text.js";

/** $1.62, or that the price is not known. */
export const price = (usd) => (usd === null || usd === undefined ? "not known" : dollars(usd));

function figure(value, name, title) {
  return h(
    "div",
    { class: "figure-box", title },
    h("div", { class: "figure-value" }, value),
    h("div", { class: "figure-name" }, name),
  );
}

/** "saved", or "more than without compaction" for a saving below zero. */
export function savedFigure(usd, name = "saved by compaction so far") {
  return usd < 0 ? figure(dollars(-usd), "more than without compaction so far") : figure(price(usd), name);
}

const share = (part, all) => (all ? percent(part, all) : "–");

/** The figures of one call: its cost, what it would have cost, what the cache served. */
export function callFigures({ cost }) {
  if (!cost) return [];
  const isCompacted = cost.uncompacted_tokens !== cost.input_tokens;
  const told = cost.is_cache_reported ? "served from the cache" : "from the cache, estimated";
  return [
    figure(price(cost.usd), cost.model ? ["for the prompt, ", visible(cost.model)] : "for the prompt"),
    isCompacted
      ? figure(
          price(cost.usd_uncompacted),
          cost.fits_uncompacted
            ? `without compaction, ${whole(cost.uncompacted_tokens)} tokens`
            : `without compaction, ${whole(cost.uncompacted_tokens)} tokens: more than the window`,
        )
      : null,
    figure(share(cost.cached_tokens, cost.input_tokens), told),
  ];
}

/** The card of what a session cost: sums, and what must be said beside them. */
export function moneyCard(cost) {
  if (!cost || !cost.tokens_sent) return null;
  const isEstimated = cost.cache_reported_calls === 0;
  return h(
    "section",
    { class: "card money-card", "aria-label": "Cost" },
    h(
      "div",
      { class: "card-head" },
      h("h2", null, "Cost"),
      h("span", { class: "card-note" }, cost.models.length ? visible(cost.models.join(", ")) : "model not recorded"),
    ),
    h(
      "div",
      { class: "sums" },
      figure(price(cost.usd), "prompts and summaries"),
      figure(price(cost.usd_uncompacted), "prompts without compaction"),
      savedFigure(cost.usd_saved),
      figure(
        cost.cached_share === null ? "–" : percent(cost.cached_share, 1),
        isEstimated ? "from the cache, estimated" : "served from the cache",
      ),
      figure(
        price(cost.usd_summaries),
        cost.summarizer_calls
          ? `summaries: ${count(cost.summarizer_calls, "call")}, ${whole(cost.summarizer_input_tokens)} tokens in, ${whole(cost.summarizer_output_tokens)} out`
          : "summaries",
      ),
    ),
    cost.notes.length
      ? h(
          "ul",
          { class: "lines" },
          cost.notes.map((note) => h("li", null, visible(note))),
        )
      : null,
  );
}

/** A line of what came of one compaction so far. */
export function compactionSaving(cost) {
  if (!cost || cost.usd_net === null) return null;
  const under = count(cost.calls_under, "call");
  const text =
    cost.usd_net >= 0
      ? `saved ${dollars(cost.usd_net)} in ${under}`
      : `not paid back after ${under}: ${dollars(-cost.usd_net)} to go`;
  return h("div", { class: `plan-money${cost.usd_net >= 0 ? "" : " is-open"}` }, icon("layers"), text);
}
