// Events as they happen: a long poll that goes on while a view is open. The newest come first, a bounded number is kept.
import { get } from "./api.js";
import { useEffect, useState } from "./dom.js";

const KEPT_MAX = 1000;
const RETRY_MILLISECONDS = 3000;

// level: the least; event: a name or a pattern with *; paused: what happens meanwhile is fetched afterwards
// wanted: (event) -> bool, of those that are kept. returns {events: null at first, lost, error}
export function useEvents({ level, event, paused = false, wanted, wait = 20 }) {
  const [state, setState] = useState({ events: null, lost: 0, cursor: null, key: "", error: null });
  const key = JSON.stringify([level, event]);
  useEffect(() => {
    if (paused) return undefined;
    const aborter = new AbortController();
    let after = state.key === key ? state.cursor : null;
    if (state.key !== key) setState({ events: null, lost: 0, cursor: null, key, error: null });
    async function run() {
      while (!aborter.signal.aborted) {
        if (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
        try {
          const answer = await get("events", { after, wait: after === null ? 0 : wait, level, event, limit: 200 }, aborter.signal);
          if (aborter.signal.aborted) return;
          after = answer.cursor;
          const fresh = answer.events.filter((each) => !wanted || wanted(each)).reverse();
          setState((was) => ({ key, cursor: after, error: null, lost: was.lost + (answer.lost ?? 0), events: [...fresh, ...(was.events ?? [])].slice(0, KEPT_MAX) }));
        } catch (error) {
          if (aborter.signal.aborted) return;
          setState((was) => ({ ...was, error, events: was.events ?? [] }));
          await new Promise((done) => setTimeout(done, RETRY_MILLISECONDS));
        }
      }
    }
    run();
    return () => aborter.abort();
  }, [key, paused]);
  return state;
}
