// Runs before the first paint, so that a chosen theme never flashes the other one.
"use strict";
try {
  const chosen = localStorage.getItem("compact.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be switched off: the system's theme it is.
}
