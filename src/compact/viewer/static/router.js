// The address says what is shown, so that every view can be shared.

/** "#/s/a%2Fb/p/3?only=all" is {path: ["s", "a/b", "p", "3"], params: {only: "all"}}. */
export function parse(hash) {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { path: path.split("/").filter(Boolean).map(decode), params: Object.fromEntries(new URLSearchParams(query)) };
}

function decode(piece) {
  try {
    return decodeURIComponent(piece);
  } catch {
    return piece; // a stray % is taken as it is
  }
}

export function to(path, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${path.map((piece) => encodeURIComponent(piece)).join("/")}${query}`;
}

/** Write the address of what is shown without leaving it. */
export function rewrite(path, params) {
  history.replaceState(null, "", to(path, params));
}
