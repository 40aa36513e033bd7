// Dialogs, and notes that pass.
import { h, replace } from "./dom.js";

export function openDialog({ title, body, confirm = "", danger = false, close = "Cancel", onConfirm }) {
  const before = document.activeElement;
  const trouble = h("div", { class: "dialog-error", role: "alert" });
  const yes =
    confirm &&
    h("button", { class: danger ? "btn danger" : "btn primary", type: "button", "data-confirm": true }, confirm);
  const no = h("button", { class: "btn", type: "button", on: { click: () => box.close() } }, close);
  const box = h(
    "dialog",
    { class: "dialog", "aria-label": title },
    h("h2", null, title),
    h("div", { class: "dialog-body" }, body),
    trouble,
    h("div", { class: "dialog-foot" }, no, yes),
  );
  box.addEventListener("close", () => {
    box.remove();
    before?.focus?.();
  });
  box.addEventListener("click", (event) => {
    if (event.target === box) box.close();
  });
  if (yes) yes.addEventListener("click", () => settle({ box, yes, trouble, onConfirm }));
  document.body.append(box);
  box.showModal();
  no.focus();
  return box;
}

async function settle({ box, yes, trouble, onConfirm }) {
  yes.disabled = true;
  yes.setAttribute("aria-busy", "true");
  try {
    await onConfirm();
    box.close();
  } catch (error) {
    replace(trouble, h("strong", null, error.message), error.hint && h("div", null, error.hint));
    yes.disabled = false;
    yes.removeAttribute("aria-busy");
  }
}

export function toast(text) {
  const note = h("div", { class: "toast" }, text);
  document.getElementById("toasts").append(note);
  setTimeout(() => note.remove(), 5000);
}
