// Where a phrase is: first whether the newest prompt has it, then each message of the log that does.
import { debounce, h, replace } from "../base/dom.js";
import { count, dateTime, whole } from "../base/format.js";
import { actionChip, icon } from "../base/icons.js";
import { visible } from "../base/text.js";
import { get, segment } from "../data/api.js";
import { rewrite, to } from "../router.js";
import { roleTag } from "../widgets/content.js";
import { closeDrawer, showMessage } from "../widgets/drawer.js";
import { empty, failed, loading } from "../widgets/states.js";
import { sessionTabs } from "./tabs.js";
import { callRanges, excerpt, verdictCard } from "./verdict.js";

// Chosen: what a screen or two show; a button shows the rest.
const PAGE = 50;
// Chosen: longer than the pause between two keys, shorter than anybody waits for.
const TYPING_MS = 200;

const HELP = {
  title: "Does the model still see it?",
  text: "Type some words of a message to find where they are now: in the prompt, behind a stub, in the summary, or only in the log.",
  iconName: "question",
};

// -- each message -------------------------------------------------------------------------------------------------

/** Say whether the model sees the words through one message. */
function seenText(sighting, isInPrompt) {
  if (sighting.seen_in === "message") return "In the prompt, as it came";
  if (sighting.seen_in === "stub") return "In the prompt, in what is left of this message";
  if (sighting.seen_in === "summary") return "In the prompt, in the summary that stands for it";
  return isInPrompt ? "In the prompt, but not through this message" : "Not in the prompt";
}

function decidedLine(id, sighting) {
  if (!sighting.by && !sighting.since_version) return null;
  return h(
    "p",
    { class: "dim small decided" },
    sighting.by && [h("b", null, visible(sighting.by)), sighting.reason ? [": ", visible(sighting.reason)] : null],
    sighting.since_version
      ? [
          sighting.by ? " · " : "",
          "since ",
          h("a", { href: to(["s", id, "p", sighting.since_version]) }, `plan v${sighting.since_version}`),
          sighting.since_at ? `, ${dateTime(sighting.since_at)}` : "",
        ]
      : null,
  );
}

function withoutLine(id, sighting) {
  if (sighting.is_visible || !sighting.calls_without) return null;
  return h(
    "p",
    { class: "dim small" },
    `${count(sighting.calls_without, "call")} since this message went out without the words: `,
    callRanges(id, sighting.ranges, sighting.ranges_total),
  );
}

function sightingArticle(id, sighting, isInPrompt) {
  const isLeft = sighting.action === "left";
  const state = isLeft ? h("span", { class: "dim small" }, sighting.state) : actionChip(sighting.action);
  return h(
    "article",
    { class: `sighting act-edge-${sighting.action}` },
    h(
      "header",
      { class: "slot-head" },
      h("span", { class: "num faint" }, whole(sighting.seq)),
      roleTag(sighting.role),
      state,
      sighting.count > 1 && h("span", { class: "num dim small" }, `×${whole(sighting.count)}`),
      h("span", { class: "grow" }),
      h(
        "button",
        { class: "btn small ghost", type: "button", on: { click: () => showMessage(id, sighting.message_id) } },
        "original",
        icon("arrow"),
      ),
    ),
    h(
      "p",
      { class: "where" },
      icon(sighting.is_visible ? "eye" : "drop"),
      h("span", null, seenText(sighting, isInPrompt)),
    ),
    excerpt(sighting.excerpt),
    decidedLine(id, sighting),
    withoutLine(id, sighting),
  );
}

/** The messages that contain a phrase: a page of them, and a button for the next. */
class Sightings {
  constructor(id, answer, loadMore) {
    this.id = id;
    this.isInPrompt = answer.verdict.is_in_prompt;
    this.total = answer.sightings_total;
    this.shown = 0;
    this.title = h("h2", { class: "sightings-title" });
    this.list = h("div", { class: "sightings" });
    this.button = h("button", { class: "btn", type: "button", on: { click: () => this.more(loadMore) } });
    this.el = h("div", null, this.title, this.list, this.button);
    this.add(answer.sightings);
  }

  add(sightings) {
    this.list.append(...sightings.map((sighting) => sightingArticle(this.id, sighting, this.isInPrompt)));
    this.shown += sightings.length;
    const all = count(this.total, "message of the log contains it", "messages of the log contain it");
    replace(this.title, this.shown < this.total ? `${all}, ${whole(this.shown)} of ${whole(this.total)} shown` : all);
    replace(this.button, `Show ${whole(Math.min(PAGE, this.total - this.shown))} more`);
    this.button.hidden = this.shown >= this.total;
  }

  async more(loadMore) {
    this.button.disabled = true;
    try {
      this.add((await loadMore(this.shown)).sightings);
    } catch (error) {
      if (error.name !== "AbortError") replace(this.button, `${error.message} Try again`);
    } finally {
      this.button.disabled = false;
    }
  }
}

// -- the view -----------------------------------------------------------------------------------------------------

/** Searches one phrase at a time: a new one cancels the request of the one before. */
function searcher(id, signal) {
  let controller = null;
  const cancel = () => controller?.abort();
  signal.addEventListener("abort", cancel);
  return {
    cancel,
    start(q) {
      cancel();
      controller = new AbortController();
      const own = controller.signal;
      return (offset) => get(`/api/sessions/${segment(id)}/why`, { q, offset, limit: PAGE }, own);
    },
  };
}

const NOT_FOUND = {
  title: "Not found",
  text: "No message and no prompt of this session contains these words.",
  iconName: "search",
};

export async function whyView(ctx, { session: id, params }) {
  ctx.crumbs([{ text: "Sessions", href: "#/" }, { text: id, href: to(["s", id]) }, { text: "why" }]);
  const input = h("input", {
    type: "search",
    placeholder: "never touch the migrations",
    "aria-label": "Phrase",
    value: params.q ?? "",
    autocomplete: "off",
    spellcheck: "false",
  });
  const found = h("div", { class: "why-answer", role: "region", "aria-live": "polite", "aria-label": "Where it is" });
  const requests = searcher(id, ctx.signal);
  const search = async () => {
    const q = input.value.trim();
    rewrite(["s", id, "why"], { q });
    if (!q) {
      requests.cancel();
      found.classList.remove("is-waiting");
      return replace(found, empty(HELP));
    }
    const load = requests.start(q);
    // What is there stays until the answer comes: a page that flickers with each key is hard to read.
    if (found.querySelector(".verdict")) found.classList.add("is-waiting");
    else replace(found, loading(3));
    try {
      const answer = await load(0);
      return show(answer, load);
    } catch (error) {
      return error.name === "AbortError" ? null : show(null, null, error);
    }
  };
  const show = (answer, load, error) => {
    found.classList.remove("is-waiting");
    if (error) return replace(found, failed(error, search));
    if (!answer.is_known)
      return replace(found, empty(NOT_FOUND));
    const sightings = answer.sightings_total ? new Sightings(id, answer, load).el : noMessage();
    return replace(found, verdictCard(id, answer), sightings);
  };
  const searchSoon = debounce(search, TYPING_MS);
  input.addEventListener("input", () => {
    requests.cancel();
    searchSoon.cancel();
    searchSoon();
  });
  replace(
    ctx.main,
    h(
      "div",
      { class: "page" },
      h("div", { class: "page-head" }, h("h1", { class: "mono" }, visible(id))),
      sessionTabs(id, "why"),
      h("label", { class: "search big" }, icon("search"), input, h("kbd", { class: "hint" }, "/")),
      found,
    ),
  );
  ctx.onLeave(() => {
    searchSoon.cancel();
    closeDrawer();
  });
  if (!params.q) {
    input.focus();
    // The server reads the session while somebody types. If that fails, so does the search, which says it.
    get(`/api/sessions/${segment(id)}/why`, { q: id, limit: 0 }, ctx.signal).catch(() => {});
  }
  await search();
  return { onKey: (event) => event.key === "Escape" && closeDrawer() };
}

const noMessage = () =>
  h("p", { class: "quiet" }, "No message of the log contains it: the words stand in what was written for a prompt.");
