// Requests to the server that this page came from, and to no other.

class ApiError extends Error {
  constructor(message, { hint = "", status = 0 } = {}) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

// Told to the document when the server does not know this browser.
export const TOKEN_NEEDED = "compact:token-needed";
const LOGIN = "/api/login";
const NO_ANSWER = "The viewer's server does not answer.";
let knownMeta = null;

/** Return what the server says about itself, requested once; a failure is not remembered. */
export function meta({ fresh = false } = {}) {
  if (!knownMeta || fresh) knownMeta = get("/api/meta");
  knownMeta.catch(() => {
    knownMeta = null;
  });
  return knownMeta;
}

/** Encode an id as a segment of a path. */
export const segment = encodeURIComponent;

function query(params) {
  const given = Object.entries(params ?? {}).filter(
    ([, value]) => value !== "" && value !== undefined && value !== null,
  );
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(NO_ANSWER, { hint: "Is `compact view` still running? This page tries again automatically." });
  }
  const data = await response.json().catch(() => ({}));
  if (response.ok) return data;
  if (response.status === 401 && path !== LOGIN) document.dispatchEvent(new Event(TOKEN_NEEDED));
  throw new ApiError(data.error || `The server answered ${response.status}.`, {
    hint: hintFor(response, data),
    status: response.status,
  });
}

function hintFor(response, data) {
  if (data.hint) return data.hint;
  return response.status === 401 ? "Enter the token, or open the address that `compact view` printed." : "";
}

export function get(path, params, signal) {
  return request(path + query(params), { signal });
}

/** Exchange the token for a cookie. */
export function login(token) {
  const headers = { "Content-Type": "application/json" };
  return request(LOGIN, { method: "POST", headers, body: JSON.stringify({ token }) });
}

/** Return the content of an address as a file. */
export async function getFile(path, params) {
  const response = await fetch(path + query(params), { credentials: "same-origin", cache: "no-store" });
  if (response.ok) return response.blob();
  const data = await response.json().catch(() => ({}));
  throw new ApiError(data.error || `The server answered ${response.status}.`, { status: response.status });
}

export async function post(path, body) {
  const send = async (fresh) => {
    const { csrf } = await meta({ fresh });
    const headers = { "Content-Type": "application/json", "X-Compact-CSRF": csrf };
    return request(path, { method: "POST", headers, body: JSON.stringify(body) });
  };
  try {
    return await send(false);
  } catch (error) {
    // A server that was restarted has a new CSRF token: request it once.
    if (error.status !== 403) throw error;
    return send(true);
  }
}
