// Where the page is: `#/clients?sort=lag` is {path: "/clients", params: {sort: "lag"}}. Paths are constants, names are parameters.
import { store } from "./store.js";

function here() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?", 2);
  return { path: path || "/", params: Object.fromEntries(new URLSearchParams(query)) };
}

export const place = store(here());
addEventListener("hashchange", () => place.set(here()));

// The href of a view; empty parameters are left out.
export function link(path, params = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) query.set(key, String(value));
  }
  const text = query.toString();
  return `#${path}${text ? `?${text}` : ""}`;
}

export function go(path, params) {
  location.hash = link(path, params);
}

// Change parameters of this view; without a new entry in the history, as for every letter of a search.
export function setParams(changes, { push = false } = {}) {
  const { path, params } = here();
  const next = link(path, { ...params, ...changes });
  if (push) location.hash = next;
  else {
    history.replaceState(null, "", next);
    place.set(here());
  }
}
