// The cards of a compaction: its price, its summary checked against the log, and what it lost.
import { h, replace } from "../base/dom.js";
import { count, dollars, whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visible } from "../base/text.js";
import { copyButton } from "../widgets/copy.js";
import { price } from "../widgets/money.js";

const MARKS = {
  verified: ["", "found in the log"],
  appended: ["plus", "was missing, appended by code"],
  ungrounded: ["warn", "not found in the log"],
};

function breakEven(calls) {
  if (calls === null || calls === undefined) return "never";
  return calls === 0 ? "at once" : count(calls, "call");
}

const fact = (value, name) =>
  h("div", { class: "fact" }, h("div", { class: "figure-value" }, value), h("div", { class: "figure-name" }, name));

/** What it saved so far: of the calls under this plan, with its own price taken off. */
function netFact(cost) {
  const under = `after ${count(cost.calls_under, "call")} under this plan`;
  if (cost.usd_net === null) return fact("not known", `saved ${under}`);
  return cost.usd_net >= 0 ? fact(dollars(cost.usd_net), `saved ${under}`) : fact(dollars(-cost.usd_net), `to go ${under}`);
}

/** The price of a compaction as it was when it was put in force, and what came of it. */
export function priceCard({ cost, summary }) {
  const head = h("div", { class: "card-head" }, h("h2", null, "Price"));
  if (!cost)
    return h(
      "section",
      { class: "card", "aria-label": "Price" },
      head,
      h("p", { class: "quiet" }, "Nothing is recorded of its price: it was restored, or made by an older version."),
    );
  return h(
    "section",
    { class: "card", "aria-label": "Price" },
    head,
    h(
      "div",
      { class: "facts" },
      fact(whole(cost.freed_tokens), "tokens freed per call"),
      fact(price(cost.usd_saved_per_call), "saved by each call"),
      fact(price(cost.usd_rewrite), "to cache the prefix again"),
      fact(price(cost.usd_summary), summary?.is_fallback ? "for attempts at a summary" : "for the summary"),
      fact(breakEven(cost.break_even_calls), "until it has paid for itself"),
      netFact(cost),
    ),
    cost.lines.length
      ? h(
          "ul",
          { class: "lines" },
          cost.lines.map((line) => h("li", null, visible(line))),
          cost.is_price_recorded ? null : h("li", null, "no price was at hand then: by the first one known since"),
        )
      : null,
  );
}

function markedText({ text, mark }) {
  if (!(mark in MARKS)) return h("span", null, visible(text));
  const [iconName, meaning] = MARKS[mark];
  // Most of a summary is verified: an underline is enough for that, the others have an icon.
  return h("mark", { class: `mk mk-${mark}`, title: meaning }, iconName && icon(iconName, mark), visible(text));
}

function textList(title, texts, name, iconName) {
  if (!texts?.length) return null;
  return h(
    "div",
    { class: `found found-${name}` },
    h("h3", null, icon(iconName), title),
    h(
      "ul",
      null,
      texts.map((text) => h("li", null, visible(text))),
    ),
  );
}

export function summaryCard(summary) {
  if (!summary)
    return h(
      "section",
      { class: "card", "aria-label": "Summary" },
      h("div", { class: "card-head" }, h("h2", null, "Summary")),
      h("p", { class: "quiet" }, "No summary: what the free strategies removed was enough."),
    );
  const content = summary.segments?.length ? summary.segments.map(markedText) : visible(summary.text);
  const used = new Set((summary.segments ?? []).map(({ mark }) => mark));
  const legend = Object.entries(MARKS)
    .filter(([mark]) => used.has(mark))
    .map(([mark, [, meaning]]) =>
      h("span", { class: "key" }, markedText({ text: mark, mark }), h("span", { class: "dim" }, meaning)),
    );
  return h(
    "section",
    { class: "card", "aria-label": "Summary" },
    h(
      "div",
      { class: "card-head" },
      h("h2", null, summary.is_fallback ? "In place of a summary" : "Summary"),
      h("span", { class: "card-note" }, `v${summary.version} · ${count(summary.tokens, "token")}`),
      copyButton(summary.text ?? "", { name: "Copy the summary" }),
    ),
    summary.is_fallback
      ? h(
          "p",
          { class: "failed-line" },
          icon("error"),
          visible(`${summary.writing.instead_of} wrote no summary. Code chose these lines of the log; nothing checked them.`),
        )
      : null,
    legend.length ? h("div", { class: "mark-keys" }, legend) : null,
    h("pre", { class: "text summary-text", dir: "auto", tabindex: 0, "aria-label": "Summary text" }, content),
    textList("Missing", summary.missing, "missing", "drop"),
    textList("Not found in the log", summary.ungrounded, "ungrounded", "warn"),
  );
}

const STATES = [
  ["kept", "kept"],
  ["ledger", "in the ledger"],
  ["retrievable", "retrievable"],
  ["lost", "lost"],
];

function countRow([kind, counts]) {
  const all = STATES.reduce((sum, [key]) => sum + (counts[key] ?? 0), 0);
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, visible(kind.replaceAll("_", " "))),
    STATES.map(([key]) =>
      h("td", { class: `num state-of-${key}${counts[key] ? "" : " is-zero"}` }, whole(counts[key] ?? 0)),
    ),
    h(
      "td",
      { class: "state-of-bar", "aria-hidden": "true" },
      h(
        "span",
        { class: "action-bar" },
        STATES.filter(([key]) => counts[key]).map(([key]) =>
          h("span", { class: `seg st-${key}`, style: { width: `${all ? (100 * (counts[key] ?? 0)) / all : 0}%` } }),
        ),
      ),
    ),
  );
}

const SHOWN_ITEMS = 40;

function itemList(report, openMessage) {
  const box = h("ul", { class: "items" });
  const more = h("button", { class: "btn small ghost", type: "button" });
  const draw = (items) => {
    replace(
      box,
      items.map((item) =>
        h(
          "li",
          null,
          h(
            "span",
            { class: `state-word st-word-${STATES.some(([key]) => key === item.where) ? item.where : "kept"}` },
            item.where,
          ),
          h("span", { class: "item-kind dim" }, item.kind),
          h("span", { class: "mono item-text" }, visible(item.text)),
          item.ids?.[0]
            ? h(
                "button",
                {
                  class: "btn small ghost",
                  type: "button",
                  "aria-label": "Open the original message",
                  on: { click: () => openMessage(item.ids[0]) },
                },
                "original",
                icon("arrow"),
              )
            : null,
        ),
      ),
    );
    replace(more, `Show all ${report.items.length}`);
    more.hidden = items.length >= report.items.length;
  };
  more.addEventListener("click", () => draw(report.items));
  draw(report.items.slice(0, SHOWN_ITEMS));
  const rest = (report.items_total ?? report.items.length) - report.items.length;
  return [box, more, rest > 0 ? h("p", { class: "quiet" }, `and ${whole(rest)} more`) : null];
}

export function reportCard(report, openMessage) {
  const head = h("div", { class: "card-head" }, h("h2", null, "Loss report"));
  if (!report)
    return h(
      "section",
      { class: "card", "aria-label": "Loss report" },
      head,
      h("p", { class: "quiet" }, "There is no report for this plan."),
    );
  const kinds = Object.entries(report.counts ?? {});
  return h(
    "section",
    { class: "card", "aria-label": "Loss report" },
    head,
    textList("Constraints that the model no longer sees", report.missing_constraints, "missing", "warn"),
    kinds.length
      ? h(
          "table",
          { class: "counts" },
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              h("th", null),
              STATES.map(([, text]) => h("th", { scope: "col" }, text)),
              h("th", null),
            ),
          ),
          h("tbody", null, kinds.map(countRow)),
        )
      : h("p", { class: "quiet" }, "No path, id, number, name, constraint or decision left the prompt."),
    report.items?.length
      ? h(
          "details",
          { open: true },
          h("summary", null, "String by string"),
          itemList(report, openMessage),
        )
      : null,
  );
}
