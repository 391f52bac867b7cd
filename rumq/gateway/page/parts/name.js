// A text that a client chose (its id, a topic, a user), shown so that it cannot pass for anything else: isolated and visible.
import { html } from "./dom.js";
import { visibleLine } from "./visible.js";

export { visibleLine };
const CHARS_MAX = 1000;

// Such a text where only text goes: titles, sentences of dialogs.
export const visible = (text) => visibleLine(text, CHARS_MAX);

// none: shown instead of null or the empty text
export function Name({ text, none = "–", href, title }) {
  if (text === null || text === undefined || text === "") return html`<span class="dim">${none}</span>`;
  const shown = visible(text);
  const name = html`<bdi class="name" dir="ltr" title=${title ?? (shown.length > 40 ? shown : undefined)}>${shown}</bdi>`;
  return href ? html`<a href=${href}>${name}</a>` : name;
}
