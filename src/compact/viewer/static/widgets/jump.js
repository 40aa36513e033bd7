// A box to go to a call by its number.
import { h } from "../base/dom.js";
import { whole } from "../base/format.js";
import { to } from "../router.js";

export function jumpBox(session, total) {
  const input = h("input", {
    type: "text",
    inputmode: "numeric",
    class: "jump-number",
    placeholder: total ? `1–${total}` : "",
    "aria-label": `Go to a call, 1 to ${total}`,
    size: 6,
  });
  const go = () => {
    const number = Number(input.value.replace(/[#,\s]/g, ""));
    const isCall = Number.isInteger(number) && number >= 1 && number <= total;
    input.setCustomValidity(isCall ? "" : `There are calls 1 to ${whole(total)}.`);
    if (isCall) location.hash = to(["s", session, "c", number]);
    else input.reportValidity();
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go();
  });
  input.addEventListener("input", () => input.setCustomValidity(""));
  return h("label", { class: "jump" }, h("span", { class: "dim" }, "Go to call"), input);
}
