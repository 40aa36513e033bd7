// The verdict on a phrase: whether the newest prompt has it, in what, and which calls went out without it.
import { h, isNarrow, replace } from "../base/dom.js";
import { count, whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visible } from "../base/text.js";
import { to } from "../router.js";
import { showMessage } from "../widgets/drawer.js";

// Chosen: what a screen shows beside the rest; a button shows more.
const SHOWN_PLACES = 8;
const SHOWN_RANGES = 6;

/** Make an excerpt with the phrase highlighted. */
export function excerpt(pieces) {
  return h(
    "p",
    { class: "excerpt", dir: "auto" },
    pieces.map((piece) => (piece.is_match ? h("mark", null, visible(piece.text)) : visible(piece.text))),
  );
}

const PLACE_NAMES = {
  message: ["message", "messages"],
  stub: ["stub", "stubs"],
  summary: ["summary", "summaries"],
  injected: ["injected message", "injected messages"],
  rehydrated: ["rehydrated artifact", "rehydrated artifacts"],
  repair: ["repair", "repairs"],
};

/** "2 messages, 1 stub and the summary" */
function placeNames(counts) {
  const names = Object.entries(counts).map(([kind, number]) =>
    kind === "summary" && number === 1 ? "the summary" : count(number, ...(PLACE_NAMES[kind] ?? [kind])),
  );
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join("");
}

/** Name ranges of calls by the first and the last of each, as links. */
export function callRanges(id, ranges, total) {
  const shown = ranges.slice(0, SHOWN_RANGES).map((range, index) => [
    index ? ", " : "",
    h("a", { href: to(["s", id, "c", range.first]) }, whole(range.first)),
    range.last === range.first ? null : ["–", h("a", { href: to(["s", id, "c", range.last]) }, whole(range.last))],
  ]);
  const more = total - Math.min(ranges.length, SHOWN_RANGES);
  return [shown, more > 0 ? ` and ${count(more, "more range")}` : null];
}

/** Say which calls went out without the words. */
function callsLine(id, calls) {
  if (!calls.total) return "No call has been made yet.";
  if (!calls.without) return "No call went out without it since it was first there.";
  const which = calls.without === 1 ? "call" : "calls";
  return [
    `${whole(calls.without)} of ${count(calls.total, "call")} went out without it: ${which} `,
    callRanges(id, calls.ranges, calls.ranges_total),
    ".",
  ];
}

function placeLabel(place) {
  if (place.kind === "summary") return "summary";
  if (place.kind === "message") return `#${whole(place.seq)} ${place.role}`;
  if (place.kind === "stub") return `stub of #${whole(place.seq)} ${place.role}`;
  return (PLACE_NAMES[place.kind] ?? [place.kind])[0];
}

/** Make a row of what shows the words in the newest prompt, which opens it. */
function placeRow(id, place, call) {
  const label = [placeLabel(place), place.count > 1 && h("span", { class: "num dim" }, ` ×${whole(place.count)}`)];
  let name = h("span", null, label);
  if (place.kind === "message" || place.kind === "stub")
    name = h("button", { class: "link", type: "button", on: { click: () => showMessage(id, place.message_id) } }, label);
  else if (call) name = h("a", { href: to(["s", id, "c", call]) }, label);
  return h("li", { class: "place" }, h("span", { class: "place-name" }, name), excerpt(place.excerpt));
}

/** Make the list of what shows the words: some of it, and a button for more. */
function placeList(id, { places, places_total: total, newest_call: call }) {
  const list = h("ul", { class: "places" });
  const draw = (most) => {
    const shown = places.slice(0, most);
    const rest = total - shown.length;
    const button = h(
      "button",
      { class: "btn small ghost", type: "button", on: { click: () => draw(places.length) } },
      `Show ${whole(places.length - shown.length)} more`,
    );
    replace(
      list,
      shown.map((place) => placeRow(id, place, call)),
      rest > 0 &&
        h(
          "li",
          { class: "places-rest dim small" },
          `${whole(shown.length)} of ${count(total, "place")} shown`,
          shown.length < places.length ? button : ": those in messages are all in the list below",
        ),
    );
  };
  draw(isNarrow() ? SHOWN_PLACES / 2 : SHOWN_PLACES);
  return list;
}

/** Say what the newest call had, where the prompt was changed since. */
function changedLine(id, verdict) {
  if (!verdict.is_changed_since_call || verdict.count === verdict.newest_call_count) return null;
  const had = verdict.newest_call_count ? `had it ${times(verdict.newest_call_count)}` : "went out without it";
  return h(
    "p",
    null,
    "The newest call, ",
    h("a", { href: to(["s", id, "c", verdict.newest_call]) }, `call ${whole(verdict.newest_call)}`),
    `, ${had}: the plan or the history was changed after it. This is the prompt as it stands now.`,
  );
}

const times = (number) => (number === 1 ? "once" : `${whole(number)} times`);

/** Make the card that says whether the newest prompt has the words. */
export function verdictCard(id, { verdict, calls }) {
  const isIn = verdict.is_in_prompt;
  return h(
    "section",
    { class: `verdict ${isIn ? "is-in" : "is-out"}`, "aria-label": "Verdict" },
    h(
      "h2",
      null,
      icon(isIn ? "eye" : "drop"),
      isIn ? `In the newest prompt, ${times(verdict.count)}` : "Not in the newest prompt",
    ),
    h("p", null, isIn ? `In ${placeNames(verdict.place_counts)}.` : lastSeen(id, calls), " ", callsLine(id, calls)),
    changedLine(id, verdict),
    isIn && placeList(id, verdict),
  );
}

function lastSeen(id, calls) {
  if (calls.last_with === null) return "No call ever had it.";
  return [
    "The last call that had it was ",
    h("a", { href: to(["s", id, "c", calls.last_with]) }, `call ${whole(calls.last_with)}`),
    ".",
  ];
}
