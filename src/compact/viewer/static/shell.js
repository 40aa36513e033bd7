// The bar on top: the sections, the path of the view, whether updates arrive, and the theme.
import { h, replace } from "./base/dom.js";
import { brand, icon } from "./base/icons.js";
import { visible, visibleText, withCode } from "./base/text.js";
import { onStatus, togglePause } from "./data/live.js";
import { showHelp } from "./keys.js";
import { theme, toggleTheme } from "./theme.js";

const top = document.getElementById("top");
const banner = document.getElementById("banner");
// On a phone there is no room for the path: this leads one level up.
const upLink = h("a", { class: "btn ghost square up", href: "#/", "aria-label": "Up" }, icon("left"));
const breadcrumbs = h("nav", { class: "crumbs", "aria-label": "Path" });
const liveButton = h("button", { class: "live", type: "button", on: { click: togglePause } });
let section = "sessions";
let isFollowing = false;

function tab(name, href, text) {
  return h("a", { class: "tab", href, "aria-current": section === name ? "page" : undefined }, text);
}

export function drawTop() {
  const isDark = theme() === "dark";
  const label = isDark ? "Switch to the light theme" : "Switch to the dark theme";
  replace(
    top,
    upLink,
    h("a", { class: "brand", href: "#/", "aria-label": "Compact: all sessions" }, brand(), h("span", null, "Compact")),
    h(
      "nav",
      { class: "tabs", "aria-label": "Sections" },
      tab("sessions", "#/", "Sessions"),
      tab("traces", "#/traces", "Traces"),
    ),
    breadcrumbs,
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
  if (!isFollowing) onStatus(drawLive);
  isFollowing = true;
}

function drawLive({ state, paused, waiting, problem }) {
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
      h("span", null, withCode(`${problem || "The live stream ended."} Reconnecting; what you see may be out of date.`)),
    );
}

export function setCrumbs(crumbs, inSection = "sessions") {
  section = inSection;
  drawTop();
  const parent = crumbs.at(-2);
  upLink.hidden = !parent;
  upLink.setAttribute("href", parent?.href ?? "#/");
  if (parent) upLink.setAttribute("aria-label", `Up to ${visibleText(parent.text)}`);
  replace(
    breadcrumbs,
    crumbs.map(({ text, href }, index) => [
      h("span", { class: "crumb-sep", "aria-hidden": "true" }, "/"),
      href && index < crumbs.length - 1
        ? h("a", { href }, visible(text))
        : h("span", { "aria-current": "page" }, visible(text)),
    ]),
  );
}
