// The field for the token: the viewer was started with one, and this browser does not know it yet.
import { h, replace } from "../base/dom.js";
import { icon } from "../base/icons.js";
import { login } from "../data/api.js";

/** Ask for the token, and call `onDone` once the server has taken it. */
export function loginForm(onDone) {
  const input = h("input", {
    type: "password",
    class: "token",
    "aria-label": "Token",
    autocomplete: "off",
    placeholder: "Token",
  });
  const problem = h("p", { class: "login-problem", role: "alert" });
  const button = h("button", { class: "btn primary", type: "button" }, "Open");
  const open = async () => {
    button.disabled = true;
    replace(problem);
    try {
      await login(input.value.trim());
      onDone();
    } catch (error) {
      replace(problem, error.message);
      input.select();
    } finally {
      button.disabled = false;
    }
  };
  button.addEventListener("click", open);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") open();
  });
  queueMicrotask(() => input.focus());
  return h(
    "div",
    { class: "state" },
    h("div", { class: "state-icon" }, icon("eye")),
    h("h1", null, "This viewer needs its token"),
    h("p", null, "It was started with one: --token, or COMPACT_VIEW_TOKEN. On a terminal it is in the address it printed."),
    h("div", { class: "login" }, input, button),
    problem,
  );
}
