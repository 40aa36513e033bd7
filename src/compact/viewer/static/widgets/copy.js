// Takes things away: to the clipboard, or as a file.
import { h, replace } from "../base/dom.js";
import { icon } from "../base/icons.js";
import { pretty } from "../base/text.js";
import { getFile, segment } from "../data/api.js";
import { toast } from "./dialog.js";

const DONE_MS = 1500;

async function write(text) {
  // Only pages from this machine, or over HTTPS, may use the clipboard directly.
  if (navigator.clipboard?.writeText) return navigator.clipboard.writeText(text);
  const field = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  if (!isDone) throw new Error("The browser does not allow it here.");
}

/** Make a button that copies a text, or what a function returns, perhaps later. */
export function copyButton(text, { label = "Copy", name = label, small = true } = {}) {
  const content = () => [icon("copy"), label && h("span", null, label)];
  const button = h(
    "button",
    {
      class: `btn ghost copy${small ? " small" : ""}${label ? "" : " square"}`,
      type: "button",
      title: name,
      "aria-label": name,
    },
    content(),
  );
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    try {
      await write(typeof text === "function" ? await text() : text);
      replace(button, icon("check"), label && h("span", null, "Copied"));
      setTimeout(() => replace(button, content()), DONE_MS);
    } catch (error) {
      toast(`Not copied: ${error.message}`);
    }
  });
  return button;
}

/** Make a button that saves what a function returns as a file. */
export function downloadButton(load, { label, file }) {
  const button = h("button", { class: "btn", type: "button" }, icon("download"), label);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      save(await load(), file);
    } catch (error) {
      toast(`Not saved: ${error.message}`);
    } finally {
      button.disabled = false;
    }
  });
  return button;
}

/** Make a button that saves the log of a session, without secrets. */
export function exportButton(session) {
  const load = () => getFile(`/api/sessions/${segment(session)}/export`);
  return downloadButton(load, { label: "Export log", file: `${session}.jsonl` });
}

function save(blob, file) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = file.replace(/[^A-Za-z0-9_.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Make a button that shows data as JSON below, and hides it again; `raw` returns the data. */
export function rawToggle(raw) {
  const box = h("div", { class: "raw", hidden: true });
  const button = h("button", { class: "btn small ghost", type: "button", "aria-expanded": "false" }, "Raw");
  button.addEventListener("click", () => {
    box.hidden = !box.hidden;
    button.setAttribute("aria-expanded", String(!box.hidden));
    if (box.hidden) return;
    const text = pretty(raw());
    replace(box, h("pre", { class: "text", dir: "auto" }, text), copyButton(text, { label: "Copy JSON" }));
  });
  return { button, box };
}
