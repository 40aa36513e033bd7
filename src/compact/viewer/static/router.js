// The address names the view and its state, so that every view can be shared.

/** "#/s/a%2Fb/p/3?only=all" is {path: ["s", "a/b", "p", "3"], params: {only: "all"}}. */
export function parse(hash) {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { path: path.split("/").filter(Boolean).map(decode), params: Object.fromEntries(new URLSearchParams(query)) };
}

function decode(piece) {
  try {
    return decodeURIComponent(piece);
  } catch {
    return piece; // a stray % stays as it is
  }
}

/** Return the link of a path inside the page. */
export function to(path, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const query = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${path.map((piece) => encodeURIComponent(piece)).join("/")}${query}`;
}

/** Change the address without leaving the view. */
export function rewrite(path, params) {
  history.replaceState(null, "", to(path, params));
}
