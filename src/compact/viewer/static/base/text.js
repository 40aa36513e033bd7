// Content may be hostile: characters that cannot be seen, or that reverse the reading order, are made visible.
import { h } from "./dom.js";

// C0 and C1 controls (not tab and newline), bidi controls, zero width, line separators, tags, lone surrogates.
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/u;
const EACH_INVISIBLE = new RegExp(INVISIBLE.source, "gu");

function symbol(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

function tooltip(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}, an invisible character`;
}

/** Return a text with visible characters only, for titles and labels. */
export function visibleText(text) {
  const value = String(text ?? "");
  return INVISIBLE.test(value) ? value.replace(EACH_INVISIBLE, symbol) : value;
}

/** Return a text as nodes; characters that were made visible are highlighted. */
export function visible(text) {
  const value = String(text ?? "");
  if (!INVISIBLE.test(value)) return [value];
  const nodes = [];
  let last = 0;
  for (const found of value.matchAll(EACH_INVISIBLE)) {
    if (found.index > last) nodes.push(value.slice(last, found.index));
    nodes.push(h("span", { class: "ctl", title: tooltip(found[0]) }, symbol(found[0])));
    last = found.index + found[0].length;
  }
  nodes.push(value.slice(last));
  return nodes;
}

/** Return a sentence of ours as nodes; what stands between backticks is code. */
export function withCode(text) {
  return String(text ?? "")
    .split("`")
    .map((piece, index) => (index % 2 ? h("code", null, visible(piece)) : visible(piece)));
}

/** Return a text as nodes on one line, for previews in rows. */
export function oneLine(text) {
  return visible(
    String(text ?? "")
      .replace(/\s*\n\s*/g, " ⏎ ")
      .replace(/\t/g, " "),
  );
}

/** Return indented JSON of a value, or of a text that is JSON; any other text stays as it is. */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  try {
    const parsed = JSON.parse(value);
    return typeof parsed === "object" && parsed !== null ? JSON.stringify(parsed, null, 2) : value;
  } catch {
    return value;
  }
}
