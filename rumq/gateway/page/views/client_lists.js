// The lists of one session: subscriptions with their lag, messages in flight, limits, losses.
import { LOSS } from "../parts/consumer.js";
import { html } from "../parts/dom.js";
import { bytes, count, plural, short } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { Panel, Tag } from "../parts/panel.js";
import { link } from "../parts/router.js";
import { Table } from "../parts/table.js";
import { ResetButton } from "./client_actions.js";

const KINDS = {
  live: "is sent what comes", late: "catches up by a reader of its own, then goes live",
  replay: "reads the past from a start of its own, then goes live", shared: "a member of a group, which has the place",
};

export function Subscriptions({ client, detail, after }) {
  const columns = [
    { key: "filter", title: "Filter", grow: true, cell: (row) => html`<${Name} text=${row.filter}/>` },
    { key: "kind", title: "Kind", cell: (row) => (row.kind === "shared"
      ? html`<a href=${link("/groups", { client })}><${Tag} title=${KINDS.shared}>shared</${Tag}></a>` : html`<${Tag} title=${KINDS[row.kind]}>${row.kind}</${Tag}>`) },
    { key: "qos", title: "QoS", number: true, wide: true, cell: (row) => row.qos },
    { key: "options", title: "Options", wide: true, cell: (row) => [row.no_local && "no local", row.identifier && `id ${row.identifier}`].filter(Boolean).join(", ") },
    { key: "lag", title: "Lag", help: "records that its reader has not read yet", number: true, cell: (row) => (row.behind_records === null ? html`<span class="dim">group's</span>` : count(row.behind_records)) },
    { key: "reset", title: "", tight: true, cell: (row) => (row.kind === "shared" ? null
      : html`<${ResetButton} client=${client} filter=${row.filter} behind=${row.behind_records} after=${after} label="Reset …" kind="small"/>`) },
  ];
  return html`<${Panel} flush title="Subscriptions" note=${plural(detail.subscriptions.length, "filter")}>
    <${Table} label="Subscriptions" columns=${columns} rows=${detail.subscriptions} rowKey=${(row) => `${row.kind} ${row.filter}`} empty="It has subscribed to nothing."/></${Panel}>`;
}

const FLIGHT = [
  { key: "topic", title: "Topic", grow: true, cell: (row) => (row.topic ? html`<${Name} text=${row.topic} href=${link("/topic", { topic: row.topic })}/>` : html`<span class="dim" title="its record is not in memory any more">on disk</span>`) },
  { key: "id", title: "Packet id", number: true, cell: (row) => row.packet_id },
  { key: "waits", title: "Waits for", cell: (row) => row.waits_for },
  { key: "partition", title: "Partition", number: true, wide: true, cell: (row) => row.partition },
  { key: "lsn", title: "Record (lsn)", number: true, cell: (row) => count(row.lsn) },
];

export function InFlight({ detail }) {
  const total = detail.client.in_flight;
  return html`<${Panel} flush title="In flight" note=${detail.in_flight.length < total ? `the oldest ${count(detail.in_flight.length)} of ${count(total)}` : "sent, not acknowledged; the oldest first"}>
    <div class="short"><${Table} label="In flight" columns=${FLIGHT} rows=${detail.in_flight} rowKey=${(row) => `${row.packet_id} ${row.waits_for}`} empty="Nothing is in flight."/></div></${Panel}>`;
}

const WAITING = [
  { key: "records", title: "Messages", number: true, cell: (row) => count(row.records) },
  { key: "topic", title: "Topic", grow: true, cell: (row) => html`<${Name} text=${row.topic} href=${link("/topic", { topic: row.topic })}/>` },
];

// What it is still to get: `counted` is the answer of `waiting`.
export function WaitsForIt({ counted }) {
  if (!counted || !counted.topics.length) return null;
  const note = counted.messages === counted.at_most ? "counted in the log" : `the first of them are counted; at most ${count(counted.at_most)} in all`;
  return html`<${Panel} flush title="Waits for it" note=${`${plural(counted.messages, "message")}, ${note}${counted.topics.length === 20 ? "; the 20 topics with the most" : ""}`}>
    <div class="short"><${Table} label="Waits for it" columns=${WAITING} rows=${counted.topics} rowKey=${(row) => row.topic}/></div></${Panel}>`;
}

const LOSSES = [
  { key: "records", title: "Messages", number: true, cell: (row) => count(row.records) },
  { key: "topic", title: "Topic", grow: true, cell: (row) => html`<${Name} text=${row.topic}/>` },
  { key: "reason", title: "Reason", cell: (row) => html`<span title=${LOSS[row.reason]?.[0]}>${row.reason}</span>` },
  { key: "remedy", title: "What helps", wide: true, cell: (row) => html`<span class="dim">${LOSS[row.reason]?.[1] ?? ""}</span>` },
];

export function Losses({ detail }) {
  if (!detail.undelivered.length) return null;
  return html`<${Panel} flush title="Not delivered" note="by topic and reason, since the broker started">
    <div class="short"><${Table} label="Not delivered" columns=${LOSSES} rows=${detail.undelivered} rowKey=${(row) => `${row.reason} ${row.topic}`}/></div></${Panel}>`;
}

export function Limits({ detail }) {
  return html`<${Panel} title="Quota" note="of the client, its user and its listener, as far as set">
    ${detail.paused && html`<p class="notice">It is not read for now: it sent more than it may, or a request of it is under way.</p>`}
    ${!detail.limits.length ? html`<p class="dim">No limit is set: it may send as fast as it can.</p>`
      : html`<ul class="plainlist">${detail.limits.map((limit, index) => html`<li key=${index}>May send now: ${left(limit.messages, (value) => `${short(value)} messages`)}${limit.messages !== null && limit.bytes !== null ? ", " : ""}${left(limit.bytes, bytes)}</li>`)}</ul>`}
  </${Panel}>`;
}

function left(value, format) {
  if (value === null) return null;
  return value < 0 ? html`<b class="warn">nothing (${format(-value)} too much)</b>` : html`<b>${format(value)}</b>`;
}
