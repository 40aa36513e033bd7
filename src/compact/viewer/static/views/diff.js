// Before and after, message by message.
import { block, roleTag } from "../content.js";
import { h, isNarrow, replace } from "../dom.js";
import { showMessage } from "../drawer.js";
import { count } from "../format.js";
import { actionChip } from "../icons.js";
import { rewrite } from "../router.js";
import { PagedSource } from "../source.js";
import { oneLine, shown } from "../text.js";
import { VirtualList } from "../virtual.js";

export const PAGE = 100;

const INSTEAD = {
  summarize: "the summary stands for it",
  drop: "not in the prompt",
  clear: "a stub",
  externalize: "a pointer",
};

function side(half, text, label) {
  return h(
    "span",
    { class: `half act-edge-${half.action}` },
    h(
      "span",
      { class: "half-top" },
      h("span", { class: "half-label" }, label),
      actionChip(half.action),
      h("span", { class: "num dim" }, half.tokens ? count(half.tokens, "token") : ""),
    ),
    h(
      "span",
      { class: "half-text clip" },
      text ? oneLine(text) : h("span", { class: "faint" }, INSTEAD[half.action] ?? "no text"),
    ),
  );
}

const before = (row) => row.before.text || (row.before.action === "include" ? row.preview : "");
const after = (row) => row.after.text || (row.after.action === "include" ? row.preview : "");

function diffRow(row) {
  const by = [row.by, row.reason].filter(Boolean).join(": ");
  return {
    class: `diff-row${row.changed ? " is-changed" : ""}`,
    content: [
      h("span", { class: "diff-who" }, h("span", { class: "num faint" }, row.seq), roleTag(row.role, row.tool)),
      side(row.before, before(row), "before"),
      side(row.after, after(row), "after"),
      h("span", { class: "diff-why dim clip", title: by }, by ? oneLine(by) : "unchanged"),
    ],
  };
}

function openRow(id, row) {
  const stands =
    row.after.action === "include"
      ? null
      : [
          h("h3", null, "What stands for it now"),
          h(
            "div",
            { class: "drawer-line" },
            actionChip(row.after.action),
            h("span", { class: "dim" }, count(row.after.tokens, "token")),
          ),
          row.after.text
            ? block(row.after.text)
            : h(
                "p",
                { class: "quiet" },
                row.after.action === "summarize" ? "The summary stands for it." : "Nothing: it is in the log only.",
              ),
          (row.by || row.reason) && h("p", { class: "dim" }, shown([row.by, row.reason].filter(Boolean).join(": "))),
          row.artifact_id && h("p", { class: "mono small" }, "artifact ", shown(row.artifact_id)),
        ];
  showMessage(id, row.id, { extra: stands });
}

/** Before and after, row by row, fetched as they come into sight. */
export class Diff {
  constructor(ctx, id, plan, only, ask) {
    Object.assign(this, { id, plan, only });
    this.source = new PagedSource({
      size: PAGE,
      load: async (offset, limit) => {
        const { rows_total: total, rows } = await ask({ offset, limit, only: this.only, report: "without" });
        return { total, rows };
      },
    });
    this.source.give(0, plan.rows, plan.rows_total);
    this.list = new VirtualList({
      source: this.source,
      row: diffRow,
      height: () => (isNarrow() ? 138 : 66),
      label: "Messages before and after",
      scroller: ctx.main,
      onOpen: (row) => openRow(id, row),
    });
    this.segments = h("div", { class: "segments", role: "radiogroup", "aria-label": "Which messages" });
    this.total = h("span", { class: "card-note", role: "status" });
    this.none = h("p", { class: "quiet", hidden: true }, "No message changed under this plan.");
    this.source.watch(() => this.told());
  }

  told() {
    replace(this.total, count(this.source.total, "message"));
    this.none.hidden = this.source.total > 0;
  }

  choose(key, params) {
    this.only = key;
    rewrite(["s", this.id, "p", this.plan.version], { only: key === "all" ? "all" : "", against: params.against });
    this.drawSegments(params);
    this.source.reset();
  }

  drawSegments(params) {
    replace(
      this.segments,
      [
        ["changed", "Changed"],
        ["all", "All"],
      ].map(([key, text]) =>
        h(
          "button",
          {
            type: "button",
            class: "segment",
            role: "radio",
            "aria-checked": String(this.only === key),
            on: { click: () => this.choose(key, params) },
          },
          text,
        ),
      ),
    );
  }

  card(params) {
    const before = this.plan.against ? `Before (v${this.plan.against})` : "Before";
    this.drawSegments(params);
    return h(
      "section",
      { class: "card diff-card", "aria-label": "Message by message" },
      h(
        "div",
        { class: "card-head" },
        h("h2", null, "Message by message"),
        this.total,
        h("span", { class: "grow" }),
        this.segments,
      ),
      h(
        "div",
        { class: "diff-heads", "aria-hidden": "true" },
        ["Message", before, `After (v${this.plan.version})`, "By and why"].map((text) => h("span", null, text)),
      ),
      this.list.el,
      this.none,
    );
  }
}
