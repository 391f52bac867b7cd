// The switch between the system's theme, light and dark. `theme.js` sets it again before the next first paint.
import { html, useState } from "./dom.js";
import { Icon } from "./icons.js";

const KEY = "rumq.theme";
const ORDER = ["auto", "light", "dark"];
const ICONS = { auto: "auto", light: "sun", dark: "moon" };

const chosen = () => document.documentElement.dataset.theme ?? "auto";

export function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try { localStorage.setItem(KEY, theme); } catch { /* for this page only */ }
  dispatchEvent(new Event("themed"));
}

export function nextTheme() {
  const next = ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length];
  setTheme(next);
  return next;
}

export function ThemeSwitch() {
  const [theme, setNow] = useState(chosen());
  const label = `Theme: ${theme === "auto" ? "as the system" : theme}`;
  return html`<button type="button" class="plain tool" id="theme" title=${`${label} (t)`} aria-label=${label} onClick=${() => setNow(nextTheme())}><${Icon} name=${ICONS[theme]}/></button>`;
}
