// Questions to the gateway: `get(name, params)`, `act(name, body)`. A fault is an ApiFault with a sentence; 401 signs out.
import { signOut, token } from "./session.js";
import { store } from "./store.js";

export const ROWS_MAX = 200;
// away: null, or {since, why} while the gateway does not answer
export const away = store(null);

export class ApiFault extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

const base = new URL("api/v1/", document.baseURI);

function address(name, params = {}) {
  const url = new URL(name, base);
  for (const [key, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(key, String(value));
  }
  return url;
}

// GET /api/v1/NAME; empty parameters are left out
export const get = (name, params, signal) => ask("GET", address(name, params), undefined, signal);
// The answer, or {forbidden: a sentence} where the rules let the token's user read nothing of it: parts of a view say so
export const unlessForbidden = (answer) => answer.catch((fault) => {
  if (fault.status !== 403) throw fault;
  return { forbidden: fault.message };
});
// The answer, or `nothing` where what is asked for does not exist
export const unlessMissing = (answer, nothing) => answer.catch((fault) => {
  if (fault.status !== 404) throw fault;
  return nothing;
});
// POST /api/v1/actions/NAME
export const act = (name, body = {}) => ask("POST", address(`actions/${name}`), body);
// POST /api/v1/NAME
export const post = (name, body) => ask("POST", address(name), body);
// DELETE /api/v1/NAME
export const remove = (name) => ask("DELETE", address(name));
// A name in such a path: labels and ids may have any sign
export const part = (text) => encodeURIComponent(text);

// given: a token to try instead of the one that is signed in
export async function ask(method, url, body, signal, given = null) {
  const headers = { accept: "application/json", authorization: `Bearer ${given ?? token() ?? ""}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(url, {
      method, headers, signal, cache: "no-store", credentials: "omit",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    lost();
    throw new ApiFault(0, "The gateway does not answer.");
  }
  if (away.get()) away.set(null);
  let answer = null;
  try { answer = await response.json(); } catch { /* not JSON: the status says enough */ }
  if (response.ok) return answer;
  if (response.status === 401 && given === null) signOut("The token is no longer valid. Sign in again.");
  throw new ApiFault(response.status, sentence(response.status, answer));
}

export const whoIs = (given) => ask("GET", address("me"), undefined, undefined, given);

function sentence(status, answer) {
  const said = answer && typeof answer.detail === "string" ? answer.detail : "";
  if (status === 401) return "The gateway does not know this token.";
  if (status === 403) return said || "This token may not do that.";
  if (status === 404) return (said !== "Not Found" && said) || "This gateway does not have that: it is of another version.";
  if (status === 429) return "Too many refused attempts from this address: wait a moment.";
  if (status === 503) return said ? `The broker cannot answer now: ${said}` : "The broker cannot answer now.";
  return said || `The gateway answered with status ${status}.`;
}

let pinging = 0;

// Says so once, and asks for the gateway's health until it is back; views go on asking by themselves.
function lost() {
  if (!away.get()) away.set({ since: Date.now() });
  if (pinging) return;
  pinging = setInterval(async () => {
    try {
      await fetch(new URL("healthz", document.baseURI), { cache: "no-store", credentials: "omit" });
      clearInterval(pinging);
      pinging = 0;
      away.set(null);
    } catch { /* still away */ }
  }, 2000);
}
