// Two prompts side by side, of one session or of two.
import { h, isNarrow, replace } from "../base/dom.js";
import { count, percent, whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visible } from "../base/text.js";
import { get } from "../data/api.js";
import { PagedRows } from "../data/rows.js";
import { to } from "../router.js";
import { roleTag } from "../widgets/content.js";
import { closeDrawer, showMessage } from "../widgets/drawer.js";
import { choice } from "../widgets/filters.js";
import { price } from "../widgets/money.js";
import { loading } from "../widgets/states.js";
import { VirtualList } from "../widgets/virtual_list.js";
import { sideCell } from "./diff.js";

const PAGE = 100;
const CHANGES = { same: "the same", changed: "in another form", only_a: "only left", only_b: "only right" };
const ONLY = [
  ["changed", "What differs"],
  ["all", "All messages"],
];

/** Return the address that compares two calls; a call without a number is the newest of its session. */
function compareLink({ a, a_call: aCall = "", b, b_call: bCall = "" }, only = "") {
  return to(["compare"], { a, a_call: aCall, b, b_call: bCall, only: only === "all" ? "all" : "" });
}

export function compareButton(calls) {
  return h("a", { class: "btn", href: compareLink(calls) }, icon("compare"), "Compare");
}

function sideHeading({ id, call }) {
  return [h("a", { class: "mono", href: to(["s", id]) }, visible(id)), " ", h("a", { href: to(["s", id, "c", call]) }, `call #${call}`)];
}

/** The figures of both calls, and of their sessions. */
function figuresTable({ a, b }) {
  const row = (name, value) => h("tr", null, h("th", { scope: "row" }, name), [a, b].map((side) => h("td", { class: "num" }, value(side))));
  return h(
    "table",
    { class: "counts compare-figures" },
    h("thead", null, h("tr", null, h("th", null), [a, b].map((side) => h("th", { scope: "col" }, sideHeading(side))))),
    h(
      "tbody",
      null,
      row("tokens of the prompt", ({ tokens }) => whole(tokens)),
      row("messages sent", ({ messages }) => whole(messages)),
      row("messages left out", ({ evicted }) => whole(evicted)),
      row("plan", ({ plan_version: version }) => (version ? `v${version}` : "none")),
      row("cost of the prompt", ({ cost }) => price(cost.usd)),
      a.id === b.id
        ? null
        : [
            row("calls of the session", ({ calls_total: total }) => whole(total)),
            row("compactions of the session", ({ session }) => whole(session.compactions)),
            row("cost of the session", ({ session }) => price(session.cost.usd)),
            row("saved by compaction", ({ session }) => price(session.cost.usd_saved)),
          ],
    ),
  );
}

/** Say how much of the two is the same. */
function likeness({ a, b, same, same_start: start }) {
  const of = `${percent(same.tokens, a.tokens)} of the left, ${percent(same.tokens, b.tokens)} of the right`;
  return h(
    "p",
    { class: "decision" },
    icon("layers"),
    h(
      "span",
      null,
      `${count(same.messages, "message")} with ${count(same.tokens, "token")} are in both (${of}). `,
      start.messages
        ? `They begin with the same ${count(start.messages, "message")}, ${count(start.tokens, "token")}: so much can come from one cache.`
        : "They differ from the first message on.",
    ),
  );
}

function cell(side, label) {
  return side ? sideCell(side, side.preview, label) : h("span", { class: "side is-absent faint" }, "not there");
}

function compareRow({ change, a, b }) {
  const { role, source } = a ?? b;
  return {
    class: `diff-row${change === "same" ? "" : " is-changed"}`,
    content: [
      h(
        "span",
        { class: "diff-who" },
        h("span", { class: "num faint" }, [a, b].filter(Boolean).map(({ place }) => place + 1).join(" → ")),
        roleTag(role, role === "tool" ? source : ""),
      ),
      cell(a, "left"),
      cell(b, "right"),
      h("span", { class: "diff-why dim" }, CHANGES[change]),
    ],
  };
}

/** The fields that choose one side: a session, and the number of a call. */
function sideFields(name, params) {
  const session = h("input", {
    type: "text",
    class: "text-field",
    list: "sessions-to-compare",
    "aria-label": `Session on the ${name}`,
    value: params.id,
    spellcheck: "false",
  });
  const call = h("input", {
    type: "text",
    class: "jump-number",
    inputmode: "numeric",
    placeholder: "newest",
    "aria-label": `Call on the ${name}`,
    value: params.call ?? "",
  });
  const el = h(
    "fieldset",
    { class: "compare-side" },
    h("legend", { class: "dim" }, name),
    session,
    h("label", { class: "jump" }, h("span", { class: "dim" }, "call"), call),
  );
  return { el, session, call };
}

/** The form that chooses what to compare. */
function chooser(ctx, params) {
  const left = sideFields("left", { id: params.a ?? "", call: params.a_call });
  const right = sideFields("right", { id: params.b ?? "", call: params.b_call });
  const known = h("datalist", { id: "sessions-to-compare" });
  get("/api/sessions", { limit: 200 }, ctx.signal)
    .then(({ sessions }) => replace(known, sessions.map(({ id }) => h("option", { value: id }))))
    .catch(() => {}); // it only helps to type
  const form = h(
    "form",
    { class: "toolbar compare-form", "aria-label": "What to compare" },
    left.el,
    right.el,
    known,
    h("button", { class: "btn primary", type: "submit" }, "Compare"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const number = (field) => field.value.replace(/[#,\s]/g, "");
    location.hash = compareLink({
      a: left.session.value.trim(),
      a_call: number(left.call),
      b: right.session.value.trim(),
      b_call: number(right.call),
    });
  });
  return form;
}

function rowsCard(ctx, compared, only, params, request) {
  const rows = new PagedRows({
    size: PAGE,
    key: ({ a, b }) => `${a?.place ?? ""}-${b?.place ?? ""}`,
    load: async (offset, limit) => {
      const { rows_total: total, rows: loaded } = await request({ offset, limit });
      return { total, rows: loaded };
    },
  });
  rows.setPage(0, compared.rows, compared.rows_total);
  const list = new VirtualList({
    rows,
    row: compareRow,
    height: () => (isNarrow() ? 138 : 66),
    label: "Messages of both prompts",
    onOpen: ({ a, b }) => {
      const [side, shown] = b?.ids.length === 1 ? [compared.b, b] : [compared.a, a];
      if (shown?.ids.length === 1) showMessage(side.id, shown.ids[0]);
    },
  });
  ctx.onLeave(() => list.destroy());
  const which = choice("Which messages", only, ONLY, (value) => {
    location.hash = compareLink(params, value);
  });
  const heads = ["Message", "Left", "Right", "Found"].map((text) => h("span", null, text));
  const card = h(
    "section",
    { class: "card diff-card", "aria-label": "Message by message" },
    h(
      "div",
      { class: "card-head" },
      h("h2", null, "Message by message"),
      h("span", { class: "card-note" }, count(compared.rows_total, "message")),
      h("span", { class: "grow" }),
      which.el,
    ),
    h("div", { class: "diff-heads", "aria-hidden": "true" }, heads),
    list.el,
    compared.rows_total ? null : h("p", { class: "quiet" }, "Nothing differs: these prompts are the same."),
  );
  return { card, list, rows };
}

export async function compareView(ctx, { params }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: "Compare prompts" }]);
  const page = h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", null, "Compare prompts")), chooser(ctx, params));
  replace(ctx.main, page);
  ctx.onLeave(closeDrawer);
  if (!params.a || !params.b) {
    page.append(h("p", { class: "quiet" }, "Choose two sessions, or one session twice, and a call of each: without a number it is the newest."));
    return {};
  }
  const only = params.only === "all" ? "all" : "changed";
  const { a, a_call, b, b_call } = params;
  const request = (query) => get("/api/compare", { a, a_call, b, b_call, only, ...query }, ctx.signal);
  const waiting = loading(6);
  page.append(waiting);
  const compared = await request({ offset: 0, limit: PAGE }).finally(() => waiting.remove());
  const { card, list, rows } = rowsCard(ctx, compared, only, params, request);
  page.append(h("section", { class: "card", "aria-label": "Figures" }, figuresTable(compared), likeness(compared)), card);
  rows.notify();
  return { onKey: (event) => (event.key === "Escape" && closeDrawer()) || list.key(event) };
}
