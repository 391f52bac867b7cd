// An event of the broker as a line: when, what, its fields. Values may come from clients: they are shown as names are.
import { html } from "./dom.js";
import { timeOfDay } from "./format.js";
import { visibleLine } from "./visible.js";

const CHARS_MAX = 160;
const SKIPPED = ["floor", "exception"];
export const KINDS = { error: "bad", warning: "warn" };

export const textOf = (value) => (typeof value === "string" ? value : JSON.stringify(value));

export function EventFields({ fields }) {
  const why = typeof fields.why === "string" ? fields.why : "";
  const rest = Object.entries(fields).filter(([name, value]) => name !== "why" && !SKIPPED.includes(name) && value !== null && value !== "");
  return html`${why && html`<span>${visibleLine(why, 400)} </span>`}
    ${rest.map(([name, value]) => html`<span key=${name} class="fieldpair"><span class="dim">${name}</span> <bdi class="name" dir="ltr">${visibleLine(textOf(value), CHARS_MAX)}</bdi> </span>`)}`;
}

export function EventLine({ event }) {
  return html`<li class="report"><span class="dim nowrap">${timeOfDay(event.time_us)}</span>
    <span><b class=${KINDS[event.level] ?? ""}>${event.event}</b> <${EventFields} fields=${event.fields}/></span></li>`;
}
