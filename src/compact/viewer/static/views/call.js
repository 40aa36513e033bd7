// One model call: the exact prompt that went out.
import { get, part } from "../api.js";
import { partBar } from "../charts/bars.js";
import { swatch, PARTS } from "../charts/patterns.js";
import { block, otherParts, roleTag, toolCalls } from "../content.js";
import { closeDrawer, showMessage } from "../drawer.js";
import { h, replace } from "../dom.js";
import { count, moment, percent, short, whole } from "../format.js";
import { icon } from "../icons.js";
import { to } from "../router.js";
import { failed, loading } from "../states.js";
import { shown } from "../text.js";

const KINDS = {
  pinned: ["Pinned", "include"],
  message: ["Verbatim", "include"],
  cleared: ["Stub", "clear"],
  externalized: ["Pointer", "externalize"],
  summary: ["Summary", "summarize"],
  injected: ["Injected", "externalize"],
  repair: ["Repair", "other"],
};
const PAGE = 100;

function slot(id, one, index) {
  const [word, look] = KINDS[one.kind] ?? [one.kind, "other"];
  const ids = one.ids ?? [];
  return h(
    "article",
    { class: `slot slot-${one.kind in KINDS ? one.kind : "other"}`, "aria-label": `${index + 1}: ${word}` },
    h(
      "header",
      { class: "slot-head" },
      h("span", { class: "num faint slot-index" }, index + 1),
      roleTag(one.role),
      h("span", { class: `chip act act-${look}` }, word),
      one.tool_call_id ? h("span", { class: "faint mono small clip" }, "answers ", shown(one.tool_call_id)) : null,
      h("span", { class: "grow" }),
      h("span", { class: "num dim" }, count(one.tokens, "token")),
      ids.length === 1
        ? h(
            "button",
            {
              class: "btn small ghost",
              type: "button",
              "data-original": ids[0],
              on: { click: () => showMessage(id, ids[0]) },
            },
            "original",
            icon("arrow"),
          )
        : null,
      ids.length > 1 ? h("span", { class: "dim small" }, `stands for ${count(ids.length, "message")}`) : null,
    ),
    one.text ? block(one.text, { wasCut: one.cut }) : null,
    otherParts(one.parts),
    toolCalls(one.tool_calls),
  );
}

/** The calls before and after one; numbers of other sessions may lie between. */
function neighbours(session, number) {
  const at = session.calls.findIndex((one) => one.number === number);
  return {
    before: at > 0 ? session.calls[at - 1].number : null,
    after: at >= 0 ? (session.calls[at + 1]?.number ?? null) : null,
  };
}

function step(id, goal, name, label) {
  if (goal === null) return h("span", { class: "btn square ghost is-off", "aria-hidden": "true" }, icon(name));
  return h(
    "a",
    { class: "btn square ghost", href: to(["s", id, "c", goal]), title: label, "aria-label": label },
    icon(name),
  );
}

function head(id, call, near) {
  return h(
    "div",
    { class: "page-head" },
    h("h1", null, `Call #${call.number}`),
    h("span", { class: "count" }, moment(call.at)),
    h("span", { class: "grow" }),
    call.plan_version
      ? h(
          "a",
          { class: "btn", href: to(["s", id, "p", call.plan_version]) },
          icon("layers"),
          `Plan v${call.plan_version}`,
        )
      : h("span", { class: "badge" }, "no plan: the whole history"),
    step(id, near.before, "left", "Previous call (←)"),
    step(id, near.after, "right", "Next call (→)"),
  );
}

function made(call, listed, limits) {
  if (!listed) return null;
  const given = PARTS.filter(({ key }) => listed.parts?.[key]);
  return h(
    "section",
    { class: "card", "aria-label": "Made of" },
    h(
      "div",
      { class: "figures slim" },
      h(
        "div",
        { class: "figure-box" },
        h("div", { class: "figure-value" }, whole(call.tokens)),
        h("div", { class: "figure-name" }, `tokens, ${percent(call.tokens, limits?.window)} of the window`),
      ),
      call.reported
        ? h(
            "div",
            { class: "figure-box" },
            h("div", { class: "figure-value" }, whole(call.reported)),
            h("div", { class: "figure-name" }, "reported by the provider"),
          )
        : null,
      h(
        "div",
        { class: "figure-box" },
        h("div", { class: "figure-value" }, whole(call.slots_total)),
        h("div", { class: "figure-name" }, "messages sent"),
      ),
      h(
        "div",
        { class: "figure-box" },
        h("div", { class: "figure-value" }, whole(listed.evicted)),
        h("div", { class: "figure-name" }, "left out"),
      ),
    ),
    call.reason ? h("p", { class: "decision" }, icon("check"), h("span", null, shown(call.reason))) : null,
    partBar(listed.parts, limits?.window),
    h(
      "div",
      { class: "legend" },
      given.map(({ key, name }) =>
        h(
          "span",
          { class: "legend-item" },
          swatch(key),
          h("span", null, name),
          h("span", { class: "legend-value num" }, short(listed.parts[key])),
        ),
      ),
    ),
  );
}

/** Slots are added as the end of the list comes near. */
function filler(ctx, id, number, total, first) {
  const box = h("div", { class: "slots" });
  const end = h("div", { class: "slots-end" });
  let have = 0;
  let isBusy = false;
  const add = (slots) => {
    box.append(...slots.map((one, i) => slot(id, one, have + i)));
    have += slots.length;
    end.hidden = have >= total;
  };
  add(first);
  const more = async () => {
    if (isBusy || have >= total) return;
    isBusy = true;
    replace(end, loading(2));
    try {
      const { slots } = await get(
        `/api/sessions/${part(id)}/calls/${part(number)}`,
        { offset: have, limit: PAGE },
        ctx.signal,
      );
      add(slots);
      if (!slots.length) total = have;
    } catch (error) {
      if (error.name !== "AbortError") replace(end, failed(error, more));
      return;
    } finally {
      isBusy = false;
    }
    if (have < total && end.getBoundingClientRect().top < ctx.main.getBoundingClientRect().bottom + 800) more();
  };
  const near = new IntersectionObserver(
    (seen) => {
      if (seen.some((one) => one.isIntersecting)) more();
    },
    { root: ctx.main, rootMargin: "800px" },
  );
  near.observe(end);
  ctx.onEnd(() => near.disconnect());
  return [box, end];
}

export async function callView(ctx, { session: id, which }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id, href: to(["s", id]) }, { text: `call ${which}` }]);
  replace(ctx.main, h("div", { class: "page" }, loading(9)));
  const [call, session] = await Promise.all([
    get(`/api/sessions/${part(id)}/calls/${part(which)}`, { offset: 0, limit: PAGE }, ctx.signal),
    get(`/api/sessions/${part(id)}`, {}, ctx.signal),
  ]);
  const listed = session.calls.find((one) => one.number === call.number);
  const near = neighbours(session, call.number);
  replace(
    ctx.main,
    h(
      "div",
      { class: "page" },
      head(id, call, near),
      made(call, listed, session.limits),
      h("h2", { class: "section-title" }, "The prompt, as it went out"),
      filler(ctx, id, which, call.slots_total, call.slots),
    ),
  );
  ctx.onEnd(closeDrawer);
  const go = (goal) => {
    if (goal !== null) location.hash = to(["s", id, "c", goal]);
    return true;
  };
  return { keys: (event) => keysOf(event, ctx, { before: () => go(near.before), after: () => go(near.after) }) };
}

function keysOf(event, ctx, go) {
  if (event.key === "Escape") return closeDrawer();
  if (event.key === "ArrowLeft") return go.before();
  if (event.key === "ArrowRight") return go.after();
  const steps = { j: 120, k: -120, ArrowDown: 120, ArrowUp: -120 };
  if (!(event.key in steps)) return false;
  ctx.main.scrollBy({ top: steps[event.key] });
  return true;
}
