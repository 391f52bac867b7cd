// Keyboard: `g` then a letter goes to a view, `/` to the search, `?` lists what there is. Views add keys with `useKeys`.
import { useEffect } from "./dom.js";

const PAUSE = 1200; // milliseconds between `g` and the letter
const bound = new Map(); // keys -> {act, line}; the latest of the same keys counts

// keys: such as "?" or "g c"; line: what the help says; null: not listed
export function bind(keys, act, line = null) {
  const entry = { act, line };
  const before = bound.get(keys);
  bound.set(keys, entry);
  return () => {
    if (bound.get(keys) !== entry) return;
    if (before) bound.set(keys, before);
    else bound.delete(keys);
  };
}

// Keys of a component, while it is on the page: [[keys, act, line], ...]
export function useKeys(list, deps = []) {
  useEffect(() => {
    const ends = list.map(([keys, act, line]) => bind(keys, act, line));
    return () => ends.forEach((end) => end());
  }, deps);
}

export const listed = () => [...bound].filter(([, entry]) => entry.line).map(([keys, entry]) => [keys, entry.line]);

let first = "";
let since = 0;

function isTyping(target) {
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape" && isTyping(event.target) && event.target.type === "search") {
    event.preventDefault(); // a browser would clear it: the list would be another one
    event.target.blur();
    return;
  }
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const pair = first && Date.now() - since < PAUSE ? `${first} ${event.key}` : "";
  first = "";
  const entry = (pair && bound.get(pair)) || bound.get(event.key);
  if (entry) {
    event.preventDefault();
    entry.act(event);
  } else if (event.key === "g") {
    first = "g";
    since = Date.now();
  }
});
