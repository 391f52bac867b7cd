// A value that components watch: `const away = store(false)`, `away.set(true)`, and in a component `useStore(away)`.
import { useEffect, useState } from "../vendor/htm-preact.js";

export function store(first) {
  let value = first;
  const watchers = new Set();
  return {
    get: () => value,
    set(next) {
      if (next === value) return;
      value = next;
      for (const watcher of [...watchers]) watcher(value);
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

export function useStore(of) {
  const [value, setValue] = useState(of.get());
  useEffect(() => {
    setValue(of.get());
    return of.watch(setValue);
  }, [of]);
  return value;
}
