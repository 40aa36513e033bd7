// A compaction message by message: before and after.
import { h, isNarrow, replace } from "../base/dom.js";
import { count } from "../base/format.js";
import { actionChip } from "../base/icons.js";
import { oneLine, visible } from "../base/text.js";
import { PagedRows } from "../data/rows.js";
import { rewrite, to } from "../router.js";
import { block, roleTag } from "../widgets/content.js";
import { showMessage } from "../widgets/drawer.js";
import { VirtualList } from "../widgets/virtual_list.js";

export const PAGE = 100;

const REPLACEMENTS = {
  summarize: "the summary stands for it",
  drop: "not in the prompt",
  clear: "a stub",
  externalize: "a stub that names the artifact",
};

/** What stands for a message that is not shown as it is. */
function replacement(side, isFallback) {
  if (side.action === "summarize" && isFallback) return "a summary by code replaces it: the summary failed";
  return REPLACEMENTS[side.action] ?? "no text";
}

export function sideCell(side, text, label, isFallback) {
  return h(
    "span",
    { class: `side act-edge-${side.action}` },
    h(
      "span",
      { class: "side-top" },
      h("span", { class: "side-label" }, label),
      actionChip(side.action),
      h("span", { class: "num dim" }, side.tokens ? count(side.tokens, "token") : ""),
    ),
    h(
      "span",
      { class: "side-text clip" },
      text ? oneLine(text) : h("span", { class: "faint" }, replacement(side, isFallback)),
    ),
  );
}

const before = (row) => row.before.text || (row.before.action === "include" ? row.preview : "");
const after = (row) => row.after.text || (row.after.action === "include" ? row.preview : "");

function diffRow(row, isFallback) {
  const by = [row.by, row.reason].filter(Boolean).join(": ");
  return {
    class: `diff-row${row.changed ? " is-changed" : ""}`,
    content: [
      h("span", { class: "diff-who" }, h("span", { class: "num faint" }, row.seq), roleTag(row.role, row.tool)),
      sideCell(row.before, before(row), "before"),
      sideCell(row.after, after(row), "after", isFallback),
      h("span", { class: "diff-why dim clip", title: by }, by ? oneLine(by) : "unchanged"),
    ],
  };
}

/** Open the original of a row, with what stands for it now above it. */
function openRow(id, row, isFallback) {
  const extra =
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
                row.after.action === "drop" ? "Nothing: it is only in the log." : replacement(row.after, isFallback),
              ),
          (row.by || row.reason) && h("p", { class: "dim" }, visible([row.by, row.reason].filter(Boolean).join(": "))),
          row.artifact_id && h("p", { class: "mono small" }, "artifact ", visible(row.artifact_id)),
        ];
  showMessage(id, row.id, { extra });
}

/** The card of all messages, before and after; rows are fetched as they come into view. */
export class Diff {
  constructor(ctx, id, plan, only, request) {
    Object.assign(this, { id, plan, only });
    this.rows = new PagedRows({
      size: PAGE,
      load: async (offset, limit) => {
        const { rows_total: total, rows } = await request({ offset, limit, only: this.only, report: "without" });
        return { total, rows };
      },
    });
    this.rows.setPage(0, plan.rows, plan.rows_total);
    this.list = new VirtualList({
      rows: this.rows,
      row: (row) => diffRow(row, plan.summary?.is_fallback),
      height: () => (isNarrow() ? 138 : 66),
      label: "Messages before and after",
      onOpen: (row) => openRow(id, row, plan.summary?.is_fallback),
    });
    this.segments = h("div", { class: "segments", role: "radiogroup", "aria-label": "Which messages" });
    this.total = h("span", { class: "card-note", role: "status" });
    this.emptyNote = h("p", { class: "quiet", hidden: true }, "No message changed under this plan.");
    this.rows.onChange(() => this.update());
  }

  update() {
    replace(this.total, count(this.rows.total, "message"));
    this.emptyNote.hidden = this.rows.total > 0;
  }

  choose(key, params) {
    this.only = key;
    rewrite(["s", this.id, "p", this.plan.version], { only: key === "all" ? "all" : "", against: params.against });
    this.drawSegments(params);
    this.rows.reset();
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

  /** Make the choice of the version to compare with. */
  againstSelect(params) {
    const select = h(
      "select",
      { "aria-label": "Compare with" },
      this.plan.versions
        .filter((version) => version !== this.plan.version)
        .map((version) => h("option", { value: String(version) }, version ? `v${version}` : "v0, nothing compacted")),
    );
    select.value = String(this.plan.against);
    select.addEventListener("change", () => {
      location.hash = to(["s", this.id, "p", this.plan.version], { only: params.only, against: select.value });
    });
    return h("label", { class: "select against" }, h("span", { class: "dim" }, "compared with"), select);
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
        h("h2", null, "What left, and why"),
        this.total,
        h("span", { class: "grow" }),
        this.againstSelect(params),
        this.segments,
      ),
      h(
        "div",
        { class: "diff-heads", "aria-hidden": "true" },
        ["Message", before, `After (v${this.plan.version})`, "By and why"].map((text) => h("span", null, text)),
      ),
      this.list.el,
      this.emptyNote,
    );
  }
}
