// What a compaction came to: its price, its summary checked against the log, and what it lost.
import { h, replace } from "../dom.js";
import { count, dollars, whole } from "../format.js";
import { icon } from "../icons.js";
import { shown } from "../text.js";

const MARKS = {
  verified: ["", "a source says so"],
  appended: ["plus", "missing at first, appended by code"],
  ungrounded: ["warn", "no source says so"],
};

function paidAfter(calls) {
  if (calls === null || calls === undefined) return "never";
  return calls === 0 ? "at once" : count(calls, "call");
}

export function economicsCard({ economics }) {
  const head = h("div", { class: "card-head" }, h("h2", null, "Price"));
  if (!economics)
    return h(
      "section",
      { class: "card", "aria-label": "Price" },
      head,
      h("p", { class: "quiet" }, "No price is known for this model, or nothing was rewritten."),
    );
  const fact = (value, name) =>
    h("div", { class: "fact" }, h("div", { class: "figure-value" }, value), h("div", { class: "figure-name" }, name));
  return h(
    "section",
    { class: "card", "aria-label": "Price" },
    head,
    h(
      "div",
      { class: "facts" },
      fact(whole(economics.freed_tokens), "tokens freed per call"),
      fact(dollars(economics.broken_prefix_usd), "to write the prefix again"),
      fact(dollars(economics.summary_usd), "for the summary"),
      fact(paidAfter(economics.break_even_calls), "until it has paid for itself"),
    ),
    (economics.lines ?? []).length
      ? h(
          "ul",
          { class: "lines" },
          economics.lines.map((line) => h("li", null, shown(line))),
        )
      : null,
  );
}

function marked({ text, mark }) {
  if (!(mark in MARKS)) return h("span", null, shown(text));
  const [picture, told] = MARKS[mark];
  // What is verified is much: a line under it is enough, the others have a sign.
  return h("mark", { class: `mk mk-${mark}`, title: told }, picture && icon(picture, mark), shown(text));
}

function listOf(title, texts, name, picture) {
  if (!texts?.length) return null;
  return h(
    "div",
    { class: `found found-${name}` },
    h("h3", null, icon(picture), title),
    h(
      "ul",
      null,
      texts.map((text) => h("li", null, shown(text))),
    ),
  );
}

export function summaryCard(summary) {
  if (!summary)
    return h(
      "section",
      { class: "card", "aria-label": "Summary" },
      h("div", { class: "card-head" }, h("h2", null, "Summary")),
      h("p", { class: "quiet" }, "No summary: what was free to take out was enough."),
    );
  const parts = summary.parts?.length ? summary.parts.map(marked) : shown(summary.text);
  const used = new Set((summary.parts ?? []).map((one) => one.mark));
  const legend = Object.entries(MARKS)
    .filter(([mark]) => used.has(mark))
    .map(([mark, [, told]]) =>
      h("span", { class: "key" }, marked({ text: mark, mark }), h("span", { class: "dim" }, told)),
    );
  return h(
    "section",
    { class: "card", "aria-label": "Summary" },
    h(
      "div",
      { class: "card-head" },
      h("h2", null, "Summary"),
      h("span", { class: "card-note" }, `v${summary.version} · ${count(summary.tokens, "token")}`),
    ),
    legend.length ? h("div", { class: "mark-keys" }, legend) : null,
    h("pre", { class: "text summary-text", dir: "auto", tabindex: 0, "aria-label": "Summary text" }, parts),
    listOf("Missing", summary.missing, "missing", "drop"),
    listOf("No source says so", summary.ungrounded, "ungrounded", "warn"),
  );
}

const STANDS = [
  ["kept", "kept"],
  ["ledger", "in the ledger"],
  ["retrievable", "can be recalled"],
  ["lost", "lost"],
];

function countRow([kind, counts]) {
  const all = STANDS.reduce((sum, [key]) => sum + (counts[key] ?? 0), 0);
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, shown(kind.replaceAll("_", " "))),
    STANDS.map(([key]) =>
      h("td", { class: `num stand-${key}${counts[key] ? "" : " is-zero"}` }, whole(counts[key] ?? 0)),
    ),
    h(
      "td",
      { class: "stand-bar", "aria-hidden": "true" },
      h(
        "span",
        { class: "action-bar" },
        STANDS.filter(([key]) => counts[key]).map(([key]) =>
          h("span", { class: `seg st-${key}`, style: { width: `${all ? (100 * (counts[key] ?? 0)) / all : 0}%` } }),
        ),
      ),
    ),
  );
}

const SHOWN_ITEMS = 40;

function items(report, openMessage) {
  const box = h("ul", { class: "items" });
  const more = h("button", { class: "btn small ghost", type: "button" });
  const draw = (some) => {
    replace(
      box,
      some.map((item) =>
        h(
          "li",
          null,
          h(
            "span",
            { class: `stand st-word-${STANDS.some(([key]) => key === item.where) ? item.where : "kept"}` },
            item.where,
          ),
          h("span", { class: "item-kind dim" }, item.kind),
          h("span", { class: "mono item-text" }, shown(item.text)),
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
    more.hidden = some.length >= report.items.length;
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
    listOf("Constraints the agent no longer sees", report.missing_constraints, "missing", "warn"),
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
              STANDS.map(([, text]) => h("th", { scope: "col" }, text)),
              h("th", null),
            ),
          ),
          h("tbody", null, kinds.map(countRow)),
        )
      : h("p", { class: "quiet" }, "Nothing that has a name left the prompt."),
    report.items?.length
      ? h("details", { open: true }, h("summary", null, "What left, one by one"), items(report, openMessage))
      : null,
  );
}
