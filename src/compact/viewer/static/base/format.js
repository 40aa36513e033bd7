// Numbers and times for people.

const WHOLE = new Intl.NumberFormat("en-US");

/** 12,345 */
export const whole = (n) => (n === null || n === undefined ? "–" : WHOLE.format(Math.round(n)));

/** 950, 9.5k, 84k, 1.2M: at most four characters, for axes and rows. */
export function short(n) {
  if (n === null || n === undefined) return "–";
  const size = Math.abs(n);
  if (size < 1000) return String(Math.round(n));
  if (size < 9_950) return `${trim(n / 1000)}k`;
  if (size < 999_500) return `${Math.round(n / 1000)}k`;
  return `${trim(n / 1_000_000)}M`;
}

const trim = (n) => n.toFixed(1).replace(/\.0$/, "");

export function percent(part, all) {
  if (!all) return "–";
  const share = (100 * part) / all;
  return share > 0 && share < 1 ? "<1%" : `${Math.round(share)}%`;
}

export function dollars(n) {
  if (n === null || n === undefined) return "–";
  if (n === 0) return "$0";
  const size = Math.abs(n);
  return `${n < 0 ? "−" : ""}$${size.toFixed(size < 0.01 ? 4 : 2)}`;
}

/** 5s ago, 2m ago, 3h ago */
export function ago(at, now = Date.now() / 1000) {
  const seconds = Math.max(0, now - at);
  if (!at) return "–";
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)}s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h ago`;
  if (seconds < 86_400 * 30) return `${Math.floor(seconds / 86_400)}d ago`;
  return new Date(at * 1000).toLocaleDateString();
}

export function timeOfDay(at) {
  return at
    ? new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })
    : "–";
}

export function dateTime(at) {
  if (!at) return "–";
  const date = new Date(at * 1000).toLocaleDateString([], { month: "short", day: "numeric" });
  return `${date}, ${timeOfDay(at)}`;
}

export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "open";
  if (milliseconds < 1) return "<1 ms";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 59_995) return `${(milliseconds / 1000).toFixed(2)} s`;
  const seconds = Math.round(milliseconds / 1000);
  return `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
}

/** 1 message, 2 messages */
export const count = (n, one, many = `${one}s`) => `${whole(n)} ${n === 1 ? one : many}`;
