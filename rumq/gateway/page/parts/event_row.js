// An event of the broker as a line: when, what, its fields. Values may come from clients: they are shown as names are.
import { html } from "./dom.js";
import { figure, timeOfDay } from "./format.js";
import { remedyOf } from "./remedies.js";
import { visibleLine } from "./visible.js";

const CHARS_MAX = 160;
const SKIPPED = ["floor", "exception"];
export const KINDS = { error: "bad", warning: "warn" };

export const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const LABELS = { seconds: "time", bytes: "size" };
// Without the unit, which the value has: "free_bytes" -> "free", "bytes_per_second" -> "rate"
const labelOf = (name, shown) => (shown === null ? name : (LABELS[name] ?? (name === "bytes_per_second" ? "rate" : name.replace(/_(bytes|seconds|us|per_second)(?=_m|$)/g, ""))).replaceAll("_", " "));

export function EventFields({ fields }) {
  const why = typeof fields.why === "string" ? fields.why : "";
  const rest = Object.entries(fields).filter(([name, value]) => name !== "why" && !SKIPPED.includes(name) && value !== null && value !== "");
  return html`${why && html`<span>${visibleLine(why, 400)} </span>`}
    ${rest.map(([name, value]) => {
      const shown = figure(name, value);
      return html`<span key=${name} class="fieldpair"><span class="dim">${labelOf(name, shown)}</span> <bdi class="name" dir="ltr">${shown ?? visibleLine(textOf(value), CHARS_MAX)}</bdi> </span>`;
    })}`;
}

export function EventLine({ event }) {
  return html`<li class="report"><span class="dim nowrap">${timeOfDay(event.time_us)}</span>
    <span><b class=${KINDS[event.level] ?? ""}>${event.event}</b> <${EventFields} fields=${event.fields}/><${Remedy} event=${event}/></span></li>`;
}

// What to do about a warning, behind it.
export function Remedy({ event }) {
  const remedy = KINDS[event.level] && remedyOf(event);
  if (!remedy) return null;
  return html`<span class="remedy"><span class="dim">${remedy.line}</span>${remedy.href && html` <a class="button small" href=${remedy.href}>${remedy.text}</a>`}</span>`;
}
