// Events of the broker as they happen, by level and name. A row opens its fields.
import { html, useState } from "../parts/dom.js";
import { useEvents } from "../parts/event_feed.js";
import { Remedy } from "../parts/event_row.js";
import { count, figure, time, timeOfDay } from "../parts/format.js";
import { Icon } from "../parts/icons.js";
import { useKeys } from "../parts/keys.js";
import { Name } from "../parts/name.js";
import { link, setParams } from "../parts/router.js";
import { Search } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";
import { visible, visibleLine } from "../parts/visible.js";

export const title = "Events";
const LEVELS = [["debug", "All"], ["info", "Info"], ["warning", "Warnings"], ["error", "Errors"]];
const KIND = { warning: "warn", error: "bad", critical: "bad" };
const SHOWN_MAX = 200;

// "client" is searched as "client*"
const patternOf = (text) => (!text || text.includes("*") ? text : `${text}*`);

export function view({ level = "info", event = "", text = "" }) {
  const [typed, setTyped] = useState(event);
  const [paused, setPaused] = useState(false);
  const [open, setOpen] = useState(null);
  const { events, lost, error } = useEvents({ level, event: patternOf(event), paused });
  const rows = events && events.filter((each) => !text || JSON.stringify(each.fields).toLowerCase().includes(text.toLowerCase())).slice(0, SHOWN_MAX);
  useKeys([["p", () => setPaused((was) => !was), "pause the events"]]);
  return html`<${Heading} title="Events" line="What the broker reports, live. Payloads are never in it."/>
    <div class="tools">
      <div class="segmented" role="group" aria-label="Level">${LEVELS.map(([name, label]) => html`<button key=${name} type="button" aria-pressed=${level === name} onClick=${() => setParams({ level: name })}>${label}</button>`)}</div>
      <${Search} value=${typed} onInput=${(next) => { setTyped(next); setParams({ event: next }); }} placeholder="Name, such as client.*"/>
      <label class="search short"><${Icon} name="search"/><input type="search" value=${text} placeholder="Text in the fields" aria-label="Text in the fields" spellcheck=${false} onInput=${(each) => setParams({ text: each.target.value })}/></label>
      <button type="button" id="pause" aria-pressed=${paused} onClick=${() => setPaused(!paused)}>${paused ? "Continue" : "Pause"}</button>
      <span class="dim">${paused ? html`<span class="dot warn"></span> paused` : html`<span class="dot good"></span> live`}</span>
    </div>
    <${Fault} error=${error}/>
    ${lost > 0 && html`<p class="notice">${count(lost)} events were more than the broker keeps: they are only in its log.</p>`}
    <div class="table"><div class="scroll"><table class="events" aria-label="Events"><thead><tr><th class="tight">Time</th><th class="tight">Event</th><th class="number wide tight">Shard</th><th>Fields</th></tr></thead>
      <tbody>${rows && rows.map((row) => html`<${EventRows} key=${row.cursor} row=${row} isOpen=${open === row.cursor} toggle=${() => setOpen(open === row.cursor ? null : row.cursor)}/>`)}</tbody></table></div>
      ${!rows && html`<p class="empty">Loading …</p>`}
      ${rows && !rows.length && html`<p class="empty">${event || text || level !== "debug" ? "No event of this kind yet." : "No event yet."}</p>`}</div>`;
}

function EventRows({ row, isOpen, toggle }) {
  const keyed = (event) => {
    if (event.target !== event.currentTarget) return;
    const next = { ArrowDown: "nextElementSibling", j: "nextElementSibling", ArrowUp: "previousElementSibling", k: "previousElementSibling" }[event.key];
    if (event.key === "Enter" || event.key === " ") toggle();
    else if (next) event.currentTarget[next]?.focus();
    else return;
    event.preventDefault();
  };
  const kind = KIND[row.level] ?? "";
  return html`<tr class="opens ${kind && `is-${kind}`}" tabindex="0" aria-expanded=${isOpen} onClick=${(event) => !event.target.closest("a") && toggle()} onKeyDown=${keyed}>
      <td class="tight">${timeOfDay(row.time_us)}</td><td class="tight"><span class="event ${kind}">${row.event}</span></td><td class="number wide tight">${row.shard ?? "–"}</td>
      <td class="grow"><span class="value dim">${line(row.fields)}</span></td></tr>
    ${isOpen && html`<tr class="detail" tabindex="-1"><td colspan="4"><dl class="facts">
      <dt>time</dt><dd>${time(row.time_us)} <span class="dim">${new Date(row.time_us / 1000).toISOString()}</span></dd><dt>level</dt><dd><span class="tag ${kind}">${row.level}</span></dd>
      ${kind && html`<dt>what helps</dt><dd><${Remedy} event=${row}/></dd>`}
      ${Object.entries(row.fields).map(([name, value]) => html`<dt>${name}</dt><dd><${FieldValue} name=${name} value=${value}/></dd>`)}</dl></td></tr>`}`;
}

function FieldValue({ name, value }) {
  if (typeof value === "string" && value.includes("\n")) return html`<pre>${visible(value)}</pre>`;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const shown = figure(name, value);
  const href = value && name === "client_id" ? link("/client", { id: value }) : value && name === "topic" ? link("/topic", { topic: value }) : undefined;
  return html`<${Name} text=${text} href=${href}/>${shown !== null && shown !== text && html` <span class="dim">${shown}</span>`}`;
}

const line = (fields) => Object.entries(fields).filter(([, value]) => value !== null && value !== "").map(([name, value]) => `${name}=${visibleLine(typeof value === "string" ? value : JSON.stringify(value), 120)}`).join("  ").slice(0, 400);
