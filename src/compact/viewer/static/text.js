// Content is hostile until shown otherwise: what cannot be seen, or turns the reading order around, is made visible.
import { h } from "./dom.js";

// C0 and C1 controls (not tab and newline), bidi controls, zero width, line separators, tags, lone surrogates.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/u;
const EACH = new RegExp(UNSEEN.source, "gu");

function sign(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

function name(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}, shown instead of obeyed`;
}

/** The text as a string, for titles and labels. */
export function plain(text) {
  const value = String(text ?? "");
  return UNSEEN.test(value) ? value.replace(EACH, sign) : value;
}

/** The text as nodes; what was made visible is set apart. */
export function shown(text) {
  const value = String(text ?? "");
  if (!UNSEEN.test(value)) return [value];
  const nodes = [];
  let last = 0;
  for (const found of value.matchAll(EACH)) {
    if (found.index > last) nodes.push(value.slice(last, found.index));
    nodes.push(h("span", { class: "ctl", title: name(found[0]) }, sign(found[0])));
    last = found.index + found[0].length;
  }
  nodes.push(value.slice(last));
  return nodes;
}

/** One line: for previews in rows. */
export function oneLine(text) {
  return shown(
    String(text ?? "")
      .replace(/\s*\n\s*/g, " ⏎ ")
      .replace(/\t/g, " "),
  );
}

/** JSON for people, whatever it was; text that is not JSON stays as it is. */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  try {
    const parsed = JSON.parse(value);
    return typeof parsed === "object" && parsed !== null ? JSON.stringify(parsed, null, 2) : value;
  } catch {
    return value;
  }
}
