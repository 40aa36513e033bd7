// Type a phrase: where is it now, since when, and which calls went out without it.
import { get, part } from "../api.js";
import { roleTag } from "../content.js";
import { closeDrawer, showMessage } from "../drawer.js";
import { debounce, h, replace } from "../dom.js";
import { count, moment } from "../format.js";
import { actionChip, icon } from "../icons.js";
import { rewrite, to } from "../router.js";
import { empty, failed, loading } from "../states.js";
import { oneLine, shown } from "../text.js";
import { sessionTabs } from "./tabs.js";

function without(id, one) {
  const text = `${count(one.calls_without, "call")} went out without it`;
  return one.first_call_without ? h("a", { href: to(["s", id, "c", one.first_call_without]) }, text) : text;
}

function sighting(id, one) {
  return h(
    "article",
    { class: `sighting act-edge-${one.action}` },
    h(
      "header",
      { class: "slot-head" },
      h("span", { class: "num faint" }, one.seq),
      roleTag(one.role),
      actionChip(one.action),
      h("span", { class: "grow" }),
      h(
        "button",
        { class: "btn small ghost", type: "button", on: { click: () => showMessage(id, one.message_id) } },
        "original",
        icon("arrow"),
      ),
    ),
    h("p", { class: "where" }, icon(one.is_visible === false ? "drop" : "eye"), h("span", null, shown(one.where))),
    h("p", { class: "preview-text" }, oneLine(one.preview)),
    one.since_version
      ? h(
          "p",
          { class: "dim small" },
          "since ",
          h("a", { href: to(["s", id, "p", one.since_version]) }, `plan v${one.since_version}`),
          one.since_at ? `, ${moment(one.since_at)}` : "",
          one.calls_without ? [" · ", without(id, one)] : null,
        )
      : null,
  );
}

const HELP = {
  title: "Did the agent still see it?",
  text: "Type some words of a message. You see where they are now: in the prompt, behind a stub, in the summary, or only in the log.",
  picture: "question",
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
  let asked = 0;
  const ask = async () => {
    const q = input.value.trim();
    rewrite(["s", id, "why"], { q });
    const mine = (asked += 1);
    if (!q) return replace(found, empty(HELP));
    replace(found, loading(3));
    try {
      const { sightings } = await get(`/api/sessions/${part(id)}/why`, { q }, ctx.signal);
      if (mine !== asked) return null;
      return replace(
        found,
        sightings.length
          ? [
              h("p", { class: "dim" }, count(sightings.length, "message has it", "messages have it")),
              sightings.map((one) => sighting(id, one)),
            ]
          : empty({ title: "Never said", text: "No message of this session has these words.", picture: "search" }),
      );
    } catch (error) {
      return error.name === "AbortError" || mine !== asked ? null : replace(found, failed(error, ask));
    }
  };
  const typed = debounce(ask, 300);
  input.addEventListener("input", typed);
  replace(
    ctx.main,
    h(
      "div",
      { class: "page" },
      h("div", { class: "page-head" }, h("h1", { class: "mono" }, shown(id))),
      sessionTabs(id, "why"),
      h("label", { class: "search big" }, icon("search"), input, h("kbd", { class: "hint" }, "/")),
      found,
    ),
  );
  ctx.onEnd(() => {
    typed.cancel();
    closeDrawer();
  });
  await ask();
  if (!params.q) input.focus();
  return { keys: (event) => event.key === "Escape" && closeDrawer() };
}
