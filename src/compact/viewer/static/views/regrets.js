// What compactions removed and the agent asked for again: a card of the session page, hidden while there is nothing.
import { h, replace } from "../base/dom.js";
import { count, whole } from "../base/format.js";
import { actionChip } from "../base/icons.js";
import { visible } from "../base/text.js";
import { get, segment } from "../data/api.js";
import { showMessage } from "../widgets/drawer.js";

const COLUMNS = ["tool", "removed by", "recalled", "read again", "tokens"];

function countRow(row) {
  return h(
    "tr",
    null,
    h("th", { scope: "row", class: "mono" }, visible(row.source)),
    h("td", null, actionChip(row.action), row.by === row.action ? null : [" ", visible(row.by)]),
    h("td", { class: "num" }, whole(row.recalls)),
    h("td", { class: "num" }, whole(row.rereads)),
    h("td", { class: "num" }, whole(row.tokens)),
  );
}

function messageButton(id, messageId) {
  return h(
    "button",
    { class: "btn small ghost mono", type: "button", on: { click: () => showMessage(id, messageId) } },
    visible(messageId),
  );
}

function newestList(id, newest) {
  return h(
    "p",
    { class: "regret-newest dim" },
    "newest: ",
    newest.map(({ removed, found_in: foundIn }) =>
      h("span", { class: "regret-pair" }, messageButton(id, removed), "came back in", messageButton(id, foundIn)),
    ),
  );
}

/** The card, and what fills it: the log is read for it, so the page does not wait. */
export class RegretsCard {
  constructor(ctx, id) {
    Object.assign(this, { ctx, id });
    this.el = h("section", { class: "card regrets", "aria-label": "Asked for again", hidden: true });
  }

  async load() {
    const regrets = await get(`/api/sessions/${segment(this.id)}/regrets`, {}, this.ctx.signal);
    this.el.hidden = !regrets.total;
    if (!regrets.total) return;
    const note = `${count(regrets.total, "removed message")} that the agent recalled or read again`;
    replace(
      this.el,
      h("div", { class: "card-head" }, h("h2", null, "Asked for again"), h("span", { class: "card-note" }, note)),
      h(
        "table",
        { class: "counts" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            COLUMNS.map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h("tbody", null, regrets.counts.map(countRow)),
      ),
      newestList(this.id, regrets.newest),
    );
  }
}
