// The theme: dark, light, or what the system says; a choice is remembered.

const KEY = "compact.theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");

export function theme() {
  return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
}

export function toggleTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Storage may be switched off: the choice then lasts as long as the page.
  }
  return next;
}
