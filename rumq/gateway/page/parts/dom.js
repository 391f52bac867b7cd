// What every view is made of: htm's `html`, Preact's hooks, and `usePoll`, which keeps an answer of the API fresh.
import { useEffect, useRef, useState } from "../vendor/htm-preact.js";
export {
  html, render, Component, createContext,
  useCallback, useContext, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../vendor/htm-preact.js";

const REST = 10; // answers that take a second are asked for again after 10 s at the earliest: what is costly is asked seldom

// Poll `load(signal)` every so many seconds while the page is seen. Returns {data, error, loading, reload}: `data` stays
// through faults, and is dropped when `deps` change unless `keep` says to show the old answer until the new one is here.
export function usePoll(load, seconds, deps = [], { keep = true } = {}) {
  const [state, setState] = useState({ data: null, error: null, loading: true });
  const again = useRef(() => {});
  useEffect(() => {
    const aborter = new AbortController();
    let timer = 0;
    let running = false;
    let took = 0; // milliseconds of the answer before
    let wanted = false; // once more, when the answer under way is here
    if (!keep) setState({ data: null, error: null, loading: true });
    else setState((was) => ({ ...was, loading: true }));
    async function run() {
      clearTimeout(timer);
      if (running) {
        wanted = true;
        return;
      }
      running = true;
      wanted = false;
      const before = took; // one that came late by chance does not count
      const began = performance.now();
      try {
        const data = await load(aborter.signal);
        if (!aborter.signal.aborted) setState({ data, error: null, loading: false });
      } catch (error) {
        if (!aborter.signal.aborted) setState((was) => ({ data: was.data, error, loading: false }));
      }
      running = false;
      took = performance.now() - began;
      if (wanted && !aborter.signal.aborted) run();
      else if (!aborter.signal.aborted && seconds) timer = setTimeout(tick, Math.max(seconds * 1000, REST * Math.min(before, took)));
    }
    function tick() {
      if (document.hidden) timer = 0;
      else run();
    }
    function seen() {
      if (!document.hidden && !timer) run();
    }
    again.current = run;
    document.addEventListener("visibilitychange", seen);
    run();
    return () => {
      aborter.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [seconds, ...deps]);
  return { ...state, reload: () => again.current() };
}

// The value, once it has not changed for a moment: what is typed into a search.
export function useSettled(value, milliseconds = 250) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
