// Where a phrase is now, since when, and which calls went out without it.
import { debounce, h, replace } from "../base/dom.js";
import { count, dateTime } from "../base/format.js";
import { actionChip, icon } from "../base/icons.js";
import { oneLine, visible } from "../base/text.js";
import { get, segment } from "../data/api.js";
import { rewrite, to } from "../router.js";
import { roleTag } from "../widgets/content.js";
import { closeDrawer, showMessage } from "../widgets/drawer.js";
import { empty, failed, loading } from "../widgets/states.js";
import { sessionTabs } from "./tabs.js";

function callsWithout(id, sighting) {
  const text = `${count(sighting.calls_without, "call")} went out without it`;
  return sighting.first_call_without ? h("a", { href: to(["s", id, "c", sighting.first_call_without]) }, text) : text;
}

function sightingArticle(id, sighting) {
  return h(
    "article",
    { class: `sighting act-edge-${sighting.action}` },
    h(
      "header",
      { class: "slot-head" },
      h("span", { class: "num faint" }, sighting.seq),
      roleTag(sighting.role),
      actionChip(sighting.action),
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
      icon(sighting.is_visible === false ? "drop" : "eye"),
      h("span", null, visible(sighting.where)),
    ),
    h("p", { class: "preview-text" }, oneLine(sighting.preview)),
    sighting.since_version
      ? h(
          "p",
          { class: "dim small" },
          "since ",
          h("a", { href: to(["s", id, "p", sighting.since_version]) }, `plan v${sighting.since_version}`),
          sighting.since_at ? `, ${dateTime(sighting.since_at)}` : "",
          sighting.calls_without ? [" · ", callsWithout(id, sighting)] : null,
        )
      : null,
  );
}

const HELP = {
  title: "Does the model still see it?",
  text: "Type some words of a message to find where they are now: in the prompt, behind a stub, in the summary, or only in the log.",
  iconName: "question",
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
  const found = h("div", { class: "sightings", role: "region", "aria-live": "polite", "aria-label": "Where it is" });
  let requests = 0;
  const search = async () => {
    const q = input.value.trim();
    rewrite(["s", id, "why"], { q });
    const request = (requests += 1);
    if (!q) return replace(found, empty(HELP));
    replace(found, loading(3));
    try {
      const { sightings } = await get(`/api/sessions/${segment(id)}/why`, { q }, ctx.signal);
      if (request !== requests) return null;
      return replace(
        found,
        sightings.length
          ? [
              h("p", { class: "dim" }, count(sightings.length, "message contains it", "messages contain it")),
              sightings.map((sighting) => sightingArticle(id, sighting)),
            ]
          : empty({ title: "Not found", text: "No message of this session contains these words.", iconName: "search" }),
      );
    } catch (error) {
      return error.name === "AbortError" || request !== requests ? null : replace(found, failed(error, search));
    }
  };
  const searchSoon = debounce(search, 300);
  input.addEventListener("input", searchSoon);
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
  await search();
  if (!params.q) input.focus();
  return { onKey: (event) => event.key === "Escape" && closeDrawer() };
}
