// Filters of a list: choices and a search field, whose values are in the address.
import { h, replace } from "../base/dom.js";
import { whole } from "../base/format.js";
import { icon } from "../base/icons.js";
import { visibleText } from "../base/text.js";

const TYPING_MS = 250;

/** Make a choice of one value; `options` are [value, text, count]. */
export function choice(label, value, options, onChange) {
  const field = h("select", { "aria-label": label });
  const draw = (now, listed) => {
    const known = listed.some(([key]) => key === now) || !now ? listed : [...listed, [now, now]];
    replace(
      field,
      known.map(([key, text, count]) =>
        h(
          "option",
          { value: key, selected: key === now },
          visibleText(text) + (count === undefined ? "" : ` (${whole(count)})`),
        ),
      ),
    );
    field.value = now;
  };
  field.addEventListener("change", () => onChange(field.value));
  draw(value, options);
  return { el: h("label", { class: "select" }, field), draw };
}

/** Make a search field that tells of its words once the typing pauses. */
export function searchField(label, value, onChange) {
  const input = h("input", { type: "search", placeholder: label, "aria-label": label, value, spellcheck: "false" });
  let timer = 0;
  const tell = () => {
    clearTimeout(timer);
    onChange(input.value.trim());
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(tell, TYPING_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") tell();
  });
  return h("label", { class: "search" }, icon("search"), input);
}
