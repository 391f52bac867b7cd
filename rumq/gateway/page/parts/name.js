// Text that a client chose (ids, topics, users), shown so that it cannot pass for anything else: isolated, controls visible.
import { html } from "./dom.js";

// Controls, direction marks, zero-width and other characters that are not seen.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff]/g;

// "a\u202eb" -> "a⟨U+202E⟩b", for places that take text only (titles, dialogs).
export const visible = (text) => String(text).replace(UNSEEN, (one) => `⟨${code(one)}⟩`);
const code = (one) => `U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// none: shown instead of null or the empty text
export function Name({ text, none = "–", href, title }) {
  if (text === null || text === undefined || text === "") return html`<span class="dim">${none}</span>`;
  const parts = [];
  let last = 0;
  for (const found of String(text).matchAll(UNSEEN)) {
    parts.push(text.slice(last, found.index), html`<span class="unseen">${code(found[0])}</span>`);
    last = found.index + 1;
  }
  const shown = last ? [...parts, text.slice(last)] : text;
  const name = html`<bdi class="name" dir="ltr" title=${title ?? (text.length > 40 ? visible(text) : undefined)}>${shown}</bdi>`;
  return href ? html`<a href=${href}>${name}</a>` : name;
}
