// Talking to the server that this page came from, and to nobody else.

class ApiError extends Error {
  constructor(message, { hint = "", status = 0 } = {}) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

const GONE = "The viewer's server does not answer.";
let known = null;

/** What the server says of itself, asked for once; a failure is not remembered. */
export function meta({ fresh = false } = {}) {
  if (!known || fresh) known = get("/api/meta");
  known.catch(() => {
    known = null;
  });
  return known;
}

export const part = encodeURIComponent;

function query(params) {
  const given = Object.entries(params ?? {}).filter(
    ([, value]) => value !== "" && value !== undefined && value !== null,
  );
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(GONE, { hint: "Is `compact view` still running? This page tries again by itself." });
  }
  const data = await response.json().catch(() => ({}));
  if (response.ok) return data;
  throw new ApiError(data.error || `The server answered ${response.status}.`, {
    hint: hintFor(response, data),
    status: response.status,
  });
}

function hintFor(response, data) {
  if (data.hint) return data.hint;
  return response.status === 401 ? "Open the address that `compact view` printed: it carries the token." : "";
}

export function get(path, params, signal) {
  return answer(path + query(params), { signal });
}

export async function post(path, body) {
  const send = async (fresh) => {
    const { csrf } = await meta({ fresh });
    const headers = { "Content-Type": "application/json", "X-Compact-CSRF": csrf };
    return answer(path, { method: "POST", headers, body: JSON.stringify(body) });
  };
  try {
    return await send(false);
  } catch (error) {
    // A server that was started again has a new token: ask for it once.
    if (error.status !== 403) throw error;
    return send(true);
  }
}
