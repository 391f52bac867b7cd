// The broker at a glance: numbers, who is behind and why, plots over time, what was lost, the latest warnings.
import { get } from "../parts/api.js";
import { LOSS } from "../parts/consumer.js";
import { html, usePoll } from "../parts/dom.js";
import { EventLine } from "../parts/event_row.js";
import { byteRate, bytes, count, duration, percent, plural, rate } from "../parts/format.js";
import { Figures, Panel, Segmented } from "../parts/panel.js";
import { setParams } from "../parts/router.js";
import { status } from "../parts/status.js";
import { useStore } from "../parts/store.js";
import { Fault, Heading } from "../parts/view_place.js";
import { HistoryPlots, latest, RANGES, useHistory } from "./history_plots.js";
import { SlowConsumers } from "./slow_consumers.js";

export const title = "Overview";

export function view({ range = "3600" }) {
  const known = useStore(status);
  const history = useHistory(range);
  return html`<${Heading} title="Overview">
      <${Segmented} label="Range of the plots" options=${RANGES} value=${range} onChoose=${(next) => setParams({ range: next })}/></${Heading}>
    <${Fault} error=${known.error}/>
    <${Numbers} status=${known.data} history=${history.data}/>
    <${Forecast} status=${known.data} history=${history.data}/>
    <${SlowConsumers}/>
    <${Fault} error=${history.error}/>
    <${HistoryPlots} history=${history.data}/>
    <div class="columns"><${Warnings}/><${Undelivered}/></div>`;
}

function Numbers({ status, history }) {
  const now = (name) => latest(history, name);
  const disk = status && status.disk;
  const offline = status ? status.partitions.filter((row) => row.offline).length : 0;
  const fills = disk && disk.full_in_seconds !== null && disk.full_in_seconds < 86400 * 30;
  const then = disk && THEN[disk.then];
  return html`<${Figures} kind="five" list=${[
    ["Connected", count(status?.connected), status && `${plural(status.sessions, "session")}`],
    ["Published", rate(now("published")), `in ${bytes(now("bytes_in"))}/s`],
    ["Delivered", rate(now("delivered")), `out ${bytes(now("bytes_out"))}/s`],
    ["Acknowledged in", duration(now("acknowledge_p99")), `p99; p50 ${duration(now("acknowledge_p50"))}`],
    ["Delivered in", duration(now("deliver_p99")), `p99; p50 ${duration(now("deliver_p50"))}`],
    ["Farthest behind", count(now("behind_records_max")), "records"],
    ["Not delivered", count(status?.undelivered), "messages since the start", status?.undelivered ? "warn" : ""],
    ["Log", bytes(status?.log_bytes), status && `${plural(status.partitions.length, "partition")}${offline ? `, ${offline} offline` : ""}`, offline ? "bad" : ""],
    ["Disk free", bytes(disk?.free_bytes), disk && (fills ? `${then ?? disk.then} in ${duration(disk.full_in_seconds)}` : `${percent(disk.free_bytes, disk.total_bytes)} of ${bytes(disk.total_bytes)}`),
      status?.disk_is_full ? "bad" : disk && disk.full_in_seconds !== null && disk.full_in_seconds < 86400 ? "warn" : ""],
    ["Memory", bytes(status?.memory_bytes), status && plural(status.shards, "shard")],
  ]}/>`;
}

// What happens when there is no room any more, in few words: `Disk.then` has it in a sentence.
const THEN = { "the oldest segments go": "oldest go", "publishers are refused": "refuses" };

// Bytes a second by which a series grew over its range; null: not known.
export function growth(history, name) {
  const values = history?.series?.[name] ?? [];
  const known = values.map((value, index) => [index, value]).filter(([, value]) => value !== null);
  if (known.length < 2) return null;
  const [[first, before], [last, after]] = [known[0], known.at(-1)];
  return (after - before) / ((last - first) * history.step_seconds);
}

// Whose rate it is, and what happens then: the disk has other writers than the log.
function Forecast({ status, history }) {
  const disk = status && status.disk;
  if (!disk || disk.full_in_seconds === null || disk.full_in_seconds > 86_400) return null;
  const own = growth(history, "log_bytes");
  return html`<p class="notice" id="forecast">In ${duration(disk.full_in_seconds)} <b>${disk.then}</b>: everything that writes to this disk, other programs too, has used ${byteRate(disk.bytes_per_second)} of it in the last minutes
    ${own !== null && `, and the log itself ${own < 0 ? "shrank" : "grew"} by ${byteRate(Math.abs(own))}`}; at that rate only ${bytes(disk.free_wanted)} are free then.${" "}
    <span class="remedy">Free some of the disk, or bound the log: retention_bytes_max, retention_seconds_max. <a class="button small" href="#/streams">Streams, to trim</a></span></p>`;
}

function Warnings() {
  const { data, error } = usePoll((signal) => get("events", { level: "warning", limit: 12 }, signal), 5);
  const events = data ? [...data.events].reverse() : null;
  return html`<${Panel} title="Warnings" note="the newest first" right=${html`<a href="#/events">All events</a>`}>
    ${error && error.status ? html`<p class="dim">${error.message}</p>`
      : !events ? html`<p class="dim">Loading …</p>`
      : !events.length ? html`<p class="dim">None since the broker started.</p>`
      : html`<ul class="reports">${events.map((event) => html`<${EventLine} key=${event.cursor} event=${event}/>`)}</ul>`}
  </${Panel}>`;
}

function Undelivered() {
  const { data, error } = usePoll((signal) => get("metrics", {}, signal), 15);
  const reasons = new Map();
  for (const shard of data ? data.shards : []) {
    for (const [reason, messages] of Object.entries(shard.undelivered)) reasons.set(reason, (reasons.get(reason) ?? 0) + messages);
  }
  const rows = [...reasons].filter(([, messages]) => messages).sort((a, b) => b[1] - a[1]);
  return html`<${Panel} title="Not delivered, by reason" note="since the broker started">
    ${error && error.status ? html`<p class="dim">${error.message}</p>`
      : !data ? html`<p class="dim">Loading …</p>`
      : !rows.length ? html`<p class="dim">Every message was delivered to everyone who was to get it, or still waits in the log.</p>`
      : html`<table class="bare"><tbody>${rows.map(([reason, messages]) => html`<tr key=${reason}><td class="number">${count(messages)}</td>
          <td class="grow"><b>${reason}</b><br/>${LOSS[reason]?.[0] ?? ""}. <span class="dim remedy">${LOSS[reason]?.[1] ?? ""}</span></td></tr>`)}</tbody></table>`}
  </${Panel}>`;
}
