// The newest record of a topic in one line. Few are asked for at once: each answer reads the log.
import { get, unlessForbidden } from "./api.js";
import { html, useEffect, useState } from "./dom.js";
import { ago } from "./format.js";
import { bytesOf, payloadLine } from "./payload.js";

const AT_ONCE = 2;
const FRESH_MILLISECONDS = 8000;
const KEPT_MAX = 500;
const kept = new Map(); // topic -> {at, record, forbidden}
const waiting = [];
let running = 0;

// returns: a promise of {record, or null; forbidden: why it is not told}
function ask(topic, signal) {
  return new Promise((resolve, reject) => {
    waiting.push({ topic, signal, resolve, reject });
    next();
  });
}

async function next() {
  if (running >= AT_ONCE) return;
  const wanted = waiting.shift();
  if (!wanted) return;
  if (wanted.signal.aborted) return void next();
  running += 1;
  try {
    const { record = null, forbidden } = await unlessForbidden(get("value", { topic: wanted.topic }, wanted.signal));
    const found = { at: Date.now(), record, forbidden };
    kept.delete(wanted.topic);
    kept.set(wanted.topic, found);
    if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
    wanted.resolve(found);
  } catch (fault) {
    wanted.reject(fault);
  }
  running -= 1;
  next();
}

// turn: asks again when it changes and what is known is old
export function LastValue({ topic, turn }) {
  const [known, setKnown] = useState(() => kept.get(topic));
  useEffect(() => {
    const before = kept.get(topic);
    setKnown(before);
    if (before && Date.now() - before.at < FRESH_MILLISECONDS) return undefined;
    const aborter = new AbortController();
    ask(topic, aborter.signal).then((found) => !aborter.signal.aborted && setKnown(found), () => {});
    return () => aborter.abort();
  }, [topic, turn]);
  if (!known) return html`<span class="dim">…</span>`;
  if (known.forbidden) return html`<span class="dim" title=${known.forbidden}>not permitted</span>`;
  if (!known.record) return html`<span class="dim">–</span>`;
  return html`<span class="value" title=${ago(known.record.time_us)}>${payloadLine(bytesOf(known.record), known.record.content_type)}</span>`;
}
