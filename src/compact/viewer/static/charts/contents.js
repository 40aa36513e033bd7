// What fills a prompt: each part, and in it each role and tool, as bars that lead to the messages.
import { h } from "../base/dom.js";
import { count, percent, short } from "../base/format.js";
import { visible, visibleText } from "../base/text.js";
import { to } from "../router.js";
import { FREE, occurringParts, swatch } from "./parts.js";

// Chosen: what is said apart on the timeline; the rest of a part is drawn as one.
const SHOWN_SOURCES = 5;

/** Return the roles and tools of a part, the largest over all calls first. */
export function sourcesOf(calls, part) {
  const sums = new Map();
  for (const call of calls)
    for (const [source, tokens] of Object.entries(call.contents?.[part] ?? {}))
      sums.set(source, (sums.get(source) ?? 0) + tokens);
  return [...sums.entries()].sort((a, b) => b[1] - a[1]).map(([source]) => source);
}

/** Cut a part of the timeline into layers: one for each of its largest roles or tools, and one for the rest. */
export function layersOf(calls, part) {
  const sources = sourcesOf(calls, part).slice(0, SHOWN_SOURCES);
  if (sources.length < 2) return [{ shade: 0, tokens: (call) => call.parts?.[part] ?? 0 }];
  const own = (call, source) => call.contents?.[part]?.[source] ?? 0;
  const layers = sources.map((source, shade) => ({ shade, tokens: (call) => own(call, source) }));
  const rest = (call) => (call.parts?.[part] ?? 0) - sources.reduce((sum, source) => sum + own(call, source), 0);
  return [...layers, { shade: sources.length, tokens: (call) => Math.max(0, rest(call)) }];
}

function bar(key, tokens, all, isSource) {
  const style = { width: `${(100 * tokens) / all}%`, "--c": `var(--part-${key})` };
  return h(
    "span",
    { class: "fill-track", "aria-hidden": "true" },
    h("span", { class: `fill-bar${isSource ? " is-source" : ""}`, style }),
  );
}

function line({ name, key, tokens, all, href, isSource, meaning }) {
  const content = [
    isSource ? h("span", null) : swatch(key),
    h("span", { class: "fill-name clip" }, visible(name)),
    bar(key, tokens, all, isSource),
    h("span", { class: "num" }, short(tokens)),
    h("span", { class: "num dim" }, percent(tokens, all)),
  ];
  const title = visibleText(`${meaning ?? name}: ${count(tokens, "token")}`);
  const props = { class: `fill-row${isSource ? " is-source" : ""}`, title };
  return href ? h("a", { ...props, href }, content) : h("div", props, content);
}

/** Make the list of what fills the prompt of one call; each line leads to its messages. */
export function contentsList(id, call, window) {
  const parts = occurringParts([call.parts]);
  const used = parts.reduce((sum, { key }) => sum + call.parts[key], 0);
  const all = Math.max(window || 0, used, 1);
  const rows = parts.flatMap(({ key, name, meaning }) => {
    // What was imported is no call: it has no page of its own.
    const place = (query) =>
      call.number ? to(["s", id, "c", call.number], { part: key === "ledger" ? "summary" : key, ...query }) : null;
    const isInMessages = !["tools", "overhead"].includes(key);
    return [
      line({ name, key, tokens: call.parts[key], all, meaning, href: isInMessages ? place({}) : null }),
      ...Object.entries(call.contents?.[key] ?? {}).map(([source, tokens]) =>
        line({ name: source, key, tokens, all, isSource: true, href: place({ source }) }),
      ),
    ];
  });
  const free = line({ name: FREE.name, key: FREE.key, tokens: Math.max(0, all - used), all, meaning: FREE.meaning });
  return h("div", { class: "fill", role: "group", "aria-label": "What fills the window" }, rows, free);
}
