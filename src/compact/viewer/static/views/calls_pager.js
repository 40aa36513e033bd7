// What leads to the calls before and after those in the timeline, if a session has more than it shows at once.
import { h, replace } from "../base/dom.js";
import { whole } from "../base/format.js";

export function drawPager(box, { calls, calls_total: total, calls_per_page: size }, show) {
  box.hidden = total <= calls.length;
  if (box.hidden) return;
  const [first, last] = [calls[0].number, calls.at(-1).number];
  const step = (text, isOff, until) =>
    h("button", { class: "btn small", type: "button", disabled: isOff, on: { click: () => show(until) } }, text);
  replace(
    box,
    h("span", null, `Calls ${whole(first)} to ${whole(last)} of ${whole(total)}`),
    step("Earlier", first === 1, first - 1),
    step("Later", last === total, last + size >= total ? undefined : last + size),
  );
}
