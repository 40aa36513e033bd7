// The bar on top: where one is, whether news arrives, and the switches.
import { h, replace } from "./dom.js";
import { brand, icon } from "./icons.js";
import { showHelp } from "./keys.js";
import { onStatus, togglePause } from "./live.js";
import { shown } from "./text.js";
import { theme, toggleTheme } from "./theme.js";

const top = document.getElementById("top");
const banner = document.getElementById("banner");
const trail = h("nav", { class: "crumbs", "aria-label": "Where you are" });
const liveButton = h("button", { class: "live", type: "button", on: { click: togglePause } });
let section = "sessions";
let watching = false;

function tab(name, href, text) {
  return h("a", { class: "tab", href, "aria-current": section === name ? "page" : undefined }, text);
}

export function drawTop() {
  const isDark = theme() === "dark";
  const label = isDark ? "Switch to the light theme" : "Switch to the dark theme";
  replace(
    top,
    h("a", { class: "brand", href: "#/", "aria-label": "Compact: all sessions" }, brand(), h("span", null, "Compact")),
    h(
      "nav",
      { class: "tabs", "aria-label": "Sections" },
      tab("sessions", "#/", "Sessions"),
      tab("traces", "#/traces", "Traces"),
    ),
    trail,
    h(
      "div",
      { class: "top-end" },
      liveButton,
      h(
        "button",
        {
          class: "btn ghost square",
          type: "button",
          title: `${label} (t)`,
          "aria-label": label,
          on: {
            click: () => {
              toggleTheme();
              drawTop();
            },
          },
        },
        icon(isDark ? "sun" : "moon"),
      ),
      h(
        "button",
        {
          class: "btn ghost square help",
          type: "button",
          title: "Keyboard (?)",
          "aria-label": "Keyboard shortcuts",
          on: { click: showHelp },
        },
        icon("question"),
      ),
    ),
  );
  if (!watching) onStatus(drawLive);
  watching = true;
}

function drawLive({ state, paused, waiting, trouble }) {
  const [name, text] =
    state !== "open"
      ? ["off", state === "connecting" ? "Connecting" : "Offline"]
      : paused
        ? ["paused", waiting ? `Paused · ${waiting} waiting` : "Paused"]
        : ["on", "Live"];
  liveButton.className = `live is-${name}`;
  liveButton.setAttribute("aria-pressed", String(paused));
  liveButton.setAttribute("title", paused ? "Resume live updates (Space)" : "Pause live updates (Space)");
  replace(
    liveButton,
    name === "paused" ? icon("play") : h("span", { class: "pulse" }),
    h("span", { class: "live-text" }, text),
  );
  banner.hidden = state !== "reconnecting";
  if (!banner.hidden)
    replace(
      banner,
      h("span", { class: "spinner" }),
      `${trouble || "The live stream ended."} Reconnecting: what is shown may be old.`,
    );
}

export function setCrumbs(crumbs, inSection = "sessions") {
  section = inSection;
  drawTop();
  replace(
    trail,
    crumbs.map(({ text, href }, index) => [
      h("span", { class: "crumb-sep", "aria-hidden": "true" }, "/"),
      href && index < crumbs.length - 1
        ? h("a", { href }, shown(text))
        : h("span", { "aria-current": "page" }, shown(text)),
    ]),
  );
}
