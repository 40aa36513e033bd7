// One model call: the exact prompt that went out.
import { h, replace } from "../base/dom.js";
import { count, dateTime, percent, whole } from "../base/format.js";
import { actionChip, icon } from "../base/icons.js";
import { visible } from "../base/text.js";
import { partBar } from "../charts/bars.js";
import { contentsList } from "../charts/contents.js";
import { PARTS, swatch } from "../charts/parts.js";
import { get, getFile, segment } from "../data/api.js";
import { to } from "../router.js";
import { block, otherContent, roleTag, toolCalls } from "../widgets/content.js";
import { copyButton, downloadButton, rawToggle } from "../widgets/copy.js";
import { closeDrawer, showMessage } from "../widgets/drawer.js";
import { failureNotes } from "../widgets/failures.js";
import { jumpBox } from "../widgets/jump.js";
import { callFigures } from "../widgets/money.js";
import { failed, loading } from "../widgets/states.js";
import { compareButton } from "./compare.js";

const NAMES = new Map(PARTS.map(({ key, name }) => [key, name]));
const PAGE = 100;

/** Make the labels of a slot: its part, and what the plan did if it is not the original. */
function labels(slot) {
  return [
    h("span", { class: "chip part-chip" }, swatch(slot.part), NAMES.get(slot.part) ?? slot.part),
    slot.action === "include" ? null : actionChip(slot.action),
    slot.is_repair ? h("span", { class: "badge", title: "Providers refuse the prompt without it" }, "repair") : null,
  ];
}

function slotArticle(id, slot, index) {
  const name = NAMES.get(slot.part) ?? slot.part;
  const raw = rawToggle(() => wireForm(slot));
  return h(
    "article",
    { class: `slot slot-${NAMES.has(slot.part) ? slot.part : "other"}`, "aria-label": `${index + 1}: ${name}` },
    h(
      "header",
      { class: "slot-head" },
      h("span", { class: "num faint slot-index" }, index + 1),
      roleTag(slot.role, slot.role === "tool" ? slot.source : ""),
      labels(slot),
      slot.tool_call_id ? h("span", { class: "faint mono small clip" }, "answers ", visible(slot.tool_call_id)) : null,
      h("span", { class: "grow" }),
      h("span", { class: "num dim" }, count(slot.tokens, "token")),
      copyButton(slot.text || JSON.stringify(wireForm(slot)), { label: "", name: "Copy this message" }),
      raw.button,
      slot.ids.length === 1
        ? h(
            "button",
            {
              class: "btn small ghost",
              type: "button",
              "data-original": slot.ids[0],
              on: { click: () => showMessage(id, slot.ids[0]) },
            },
            "original",
            icon("arrow"),
          )
        : null,
      slot.ids.length > 1 ? h("span", { class: "dim small" }, `stands for ${count(slot.ids.length, "message")}`) : null,
    ),
    slot.text ? block(slot.text, { wasCut: slot.cut }) : null,
    otherContent(slot.content_types),
    toolCalls(slot.tool_calls),
    raw.box,
  );
}

/** Return a message of the prompt as a request has it. */
function wireForm({ role, text, tool_calls: calls, tool_call_id: answers, name }) {
  const made = calls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
  }));
  return {
    role,
    content: text || null,
    ...(made.length ? { tool_calls: made } : {}),
    ...(answers ? { tool_call_id: answers } : {}),
    ...(name ? { name } : {}),
  };
}

/** Return the calls before and after one. */
function neighbours({ number, calls_total: total }) {
  return { before: number > 1 ? number - 1 : null, after: number < total ? number + 1 : null };
}

const WIRE_FORMS = [
  ["auto", "as it was sent"],
  ["chat", "Chat Completions"],
  ["responses", "Responses"],
  ["anthropic", "Anthropic"],
  ["gemini", "Gemini"],
  ["converse", "Bedrock Converse"],
  ["vercel", "Vercel AI SDK"],
];

/** Make what takes the prompt away: as JSON, in a wire form. */
function replayBar(id, number) {
  const path = `/api/sessions/${segment(id)}/calls/${segment(number)}/prompt`;
  const form = h(
    "select",
    { "aria-label": "Wire form" },
    WIRE_FORMS.map(([value, text]) => h("option", { value }, text)),
  );
  const load = () => getFile(path, { form: form.value });
  return h(
    "div",
    { class: "replay" },
    h("label", { class: "select" }, form),
    copyButton(async () => (await load()).text(), { label: "Copy prompt as JSON", small: false }),
    downloadButton(load, { label: "Save JSON", file: `${id}-call-${number}.json` }),
  );
}

function stepButton(id, target, name, label) {
  if (target === null) return h("span", { class: "btn square ghost is-off", "aria-hidden": "true" }, icon(name));
  return h(
    "a",
    { class: "btn square ghost", href: to(["s", id, "c", target]), title: label, "aria-label": label },
    icon(name),
  );
}

function head(id, call, near) {
  return h(
    "div",
    { class: "page-head" },
    h("h1", null, `Call #${call.number}`),
    h("span", { class: "count" }, `of ${whole(call.calls_total)} · ${dateTime(call.at)}`),
    h("span", { class: "grow" }),
    jumpBox(id, call.calls_total),
    compareButton({ a: id, a_call: near.before ?? "", b: id, b_call: call.number }),
    call.plan_version
      ? h(
          "a",
          { class: "btn", href: to(["s", id, "p", call.plan_version]) },
          icon("layers"),
          `Plan v${call.plan_version}`,
        )
      : h("span", { class: "badge" }, "no plan: the whole history"),
    stepButton(id, near.before, "left", "Previous call (←)"),
    stepButton(id, near.after, "right", "Next call (→)"),
  );
}

/** Make the card of what the prompt is made of; `listed` is the call as the session lists it. */
function compositionCard(id, call, listed, limits) {
  if (!listed) return null;
  return h(
    "section",
    { class: "card", "aria-label": "What the prompt is made of" },
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
        h("div", { class: "figure-value" }, whole(call.messages_total)),
        h("div", { class: "figure-name" }, "messages sent"),
      ),
      h(
        "div",
        { class: "figure-box" },
        h("div", { class: "figure-value" }, whole(listed.evicted)),
        h("div", { class: "figure-name" }, "left out"),
      ),
      callFigures(call),
    ),
    call.reason ? h("p", { class: "decision" }, icon("check"), h("span", null, visible(call.reason))) : null,
    partBar(listed.parts, limits?.window),
    contentsList(id, { ...listed, contents: call.contents }, limits?.window),
  );
}

/** Make the list of slots; more are added as its end comes near. */
function slotList(ctx, id, number, total, first, only) {
  const box = h("div", { class: "slots" });
  const end = h("div", { class: "slots-end" });
  let loaded = 0;
  let isBusy = false;
  const add = (slots) => {
    box.append(...slots.map((slot) => slotArticle(id, slot, slot.place)));
    loaded += slots.length;
    end.hidden = loaded >= total;
  };
  add(first);
  const loadMore = async () => {
    if (isBusy || loaded >= total) return;
    isBusy = true;
    replace(end, loading(2));
    try {
      const { slots } = await get(
        `/api/sessions/${segment(id)}/calls/${segment(number)}`,
        { offset: loaded, limit: PAGE, ...only },
        ctx.signal,
      );
      add(slots);
      if (!slots.length) total = loaded;
    } catch (error) {
      if (error.name !== "AbortError") replace(end, failed(error, loadMore));
      return;
    } finally {
      isBusy = false;
    }
    if (loaded < total && end.getBoundingClientRect().top < ctx.main.getBoundingClientRect().bottom + 800) loadMore();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      if (entries.some((entry) => entry.isIntersecting)) loadMore();
    },
    { root: ctx.main, rootMargin: "800px" },
  );
  observer.observe(end);
  ctx.onLeave(() => observer.disconnect());
  return [box, end];
}

/** Say that only some of the messages are listed, with the way back to all of them. */
function filterNote(id, call, { part, source }) {
  if (!part && !source) return null;
  const what = [NAMES.get(part) ?? part, source].filter(Boolean).join(", ");
  return h(
    "p",
    { class: "decision filter-note", role: "status" },
    icon("search"),
    h("span", null, `${whole(call.slots_total)} of ${count(call.messages_total, "message")}: `, visible(what)),
    h("a", { href: to(["s", id, "c", call.number]) }, "Show all"),
  );
}

export async function callView(ctx, { session: id, which, params }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id, href: to(["s", id]) }, { text: `call ${which}` }]);
  replace(ctx.main, h("div", { class: "page" }, loading(9)));
  const only = { part: params.part, source: params.source };
  const [call, session] = await Promise.all([
    get(`/api/sessions/${segment(id)}/calls/${segment(which)}`, { offset: 0, limit: PAGE, ...only }, ctx.signal),
    get(`/api/sessions/${segment(id)}`, {}, ctx.signal),
  ]);
  const listed = session.calls.find(({ number }) => number === call.number) ?? call.listed;
  const near = neighbours(call);
  replace(
    ctx.main,
    h(
      "div",
      { class: "page" },
      head(id, call, near),
      failureNotes(call.failures),
      compositionCard(id, call, listed, session.limits),
      h(
        "div",
        { class: "section-head" },
        h("h2", { class: "section-title" }, "The prompt, as it was sent"),
        replayBar(id, call.number),
      ),
      filterNote(id, call, only),
      slotList(ctx, id, which, call.slots_total, call.slots, only),
    ),
  );
  ctx.onLeave(closeDrawer);
  const go = (target) => {
    if (target !== null) location.hash = to(["s", id, "c", target]);
    return true;
  };
  return { onKey: (event) => handleKey(event, ctx, { before: () => go(near.before), after: () => go(near.after) }) };
}

function handleKey(event, ctx, go) {
  if (event.key === "Escape") return closeDrawer();
  if (event.key === "ArrowLeft") return go.before();
  if (event.key === "ArrowRight") return go.after();
  const steps = { j: 120, k: -120, ArrowDown: 120, ArrowUp: -120 };
  if (!(event.key in steps)) return false;
  ctx.main.scrollBy({ top: steps[event.key] });
  return true;
}
