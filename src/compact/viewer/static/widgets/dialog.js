// Dialogs, and short notices.
import { h, replace } from "../base/dom.js";
import { withCode } from "../base/text.js";

export function openDialog({ title, body, confirm = "", danger = false, close = "Cancel", onConfirm }) {
  const focusedBefore = document.activeElement;
  const problem = h("div", { class: "dialog-error", role: "alert" });
  const yes =
    confirm &&
    h("button", { class: danger ? "btn danger" : "btn primary", type: "button", "data-confirm": true }, confirm);
  const no = h("button", { class: "btn", type: "button", on: { click: () => box.close() } }, close);
  const box = h(
    "dialog",
    { class: "dialog", "aria-label": title },
    h("h2", null, title),
    h("div", { class: "dialog-body" }, body),
    problem,
    h("div", { class: "dialog-foot" }, no, yes),
  );
  box.addEventListener("close", () => {
    box.remove();
    focusedBefore?.focus?.();
  });
  box.addEventListener("click", (event) => {
    if (event.target === box) box.close();
  });
  if (yes) yes.addEventListener("click", () => runConfirmed({ box, yes, problem, onConfirm }));
  document.body.append(box);
  box.showModal();
  no.focus();
  return box;
}

async function runConfirmed({ box, yes, problem, onConfirm }) {
  yes.disabled = true;
  yes.setAttribute("aria-busy", "true");
  try {
    await onConfirm();
    box.close();
  } catch (error) {
    replace(problem, h("strong", null, error.message), error.hint && h("div", null, withCode(error.hint)));
    yes.disabled = false;
    yes.removeAttribute("aria-busy");
  }
}

/** Show a notice for a few seconds. */
export function toast(text) {
  const note = h("div", { class: "toast" }, text);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), 5000);
}
