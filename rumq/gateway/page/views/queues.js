// Queues: how deep, how old, who consumes, what failed; queues are created here.
import { ActionButton } from "../parts/action.js";
import { get, part, post } from "../parts/api.js";
import { html, usePoll, useSettled, useState } from "../parts/dom.js";
import { count, duration } from "../parts/format.js";
import { Name, visible } from "../parts/name.js";
import { Bar, Tag } from "../parts/panel.js";
import { link, setParams } from "../parts/router.js";
import { Search, Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Queues";
const WHEN_FULL = [["refuse", "Refuse more messages"], ["drop-oldest", "Drop the oldest, counted as losses"]];

// Seconds since the oldest message that waits was pushed; null: none waits, or it is not known.
export const waited = (row) => (row.oldest_us ? Math.max(0, Date.now() / 1000 - row.oldest_us / 1e6) : null);

// How deep it is, of its bound.
export function Depth({ row }) {
  const fill = row.records_max ? row.depth / row.records_max : 0;
  return html`<span class=${fill >= 1 ? "bad" : fill >= 0.8 ? "warn" : ""}>${count(row.depth)}</span>${fill >= 0.1 ? html`<${Bar} part=${fill} kind=${fill >= 0.8 ? "warn" : ""} title=${`of at most ${count(row.records_max)}`}/>` : null}`;
}

export function Consumers({ row }) {
  if (row.consumers || !row.depth) return count(row.consumers);
  return html`<${Tag} kind="warn" title="Messages wait until somebody consumes">none</${Tag}>`;
}

const COLUMNS = [
  { key: "label", title: "Queue", grow: true, cell: (row) => html`<${Name} text=${row.label} href=${link("/queue", { label: row.label })}/>` },
  { key: "depth", title: "Depth", help: "messages that the slowest channel has not acknowledged", number: true, cell: (row) => html`<${Depth} row=${row}/>` },
  { key: "oldest", title: "Oldest", help: "how long the oldest of them has waited", number: true, cell: (row) => duration(waited(row)) },
  { key: "consumers", title: "Consumers", number: true, cell: (row) => html`<${Consumers} row=${row}/>` },
  { key: "dead", title: "Dead letters", help: "messages that failed too often", number: true, cell: (row) => html`<span class=${row.dead ? "warn" : ""}>${count(row.dead)}</span>` },
  { key: "channels", title: "Channels", number: true, wide: true, cell: (row) => count(row.channels.length) },
  { key: "ttl", title: "Time to live", number: true, wide: true, cell: (row) => duration(row.ttl_seconds) },
  { key: "full", title: "When full", wide: true, cell: (row) => html`<${Tag}>${row.when_full}</${Tag}>` },
];

function NewQueue({ after }) {
  return html`<${ActionButton} label="New queue …" confirm="Create" title="A new queue" after=${after}
    fields=${[
      { name: "label", label: "Label; upper and lower case are the same", value: "", first: true },
      { name: "ttl_seconds", label: "Time to live of messages, in seconds", type: "number", min: 1, max: 2592000, value: 600 },
      { name: "records_max", label: "Messages at most that are not consumed; 0: any number", type: "number", min: 0, value: 10000 },
      { name: "when_full", label: "At that bound", type: "choice", value: "refuse", quiet: true, options: WHEN_FULL },
    ]}
    body=${({ label, ttl_seconds: ttl, records_max: most, when_full: rule }) => ({ label, settings: { ttl_seconds: Number(ttl), records_max: Number(most), when_full: rule } })}
    perform=${({ label, settings }) => post(`queues/${part(label)}`, settings)}
    explain="Messages of a queue are seen by each of its channels, and go to one consumer of each. A channel sees what is pushed after it was created."
    done=${(answer) => `Queue ${visible(answer.label)} is there.`}/>`;
}

export function view({ label = "" }) {
  const [typed, setTyped] = useState(label);
  const wanted = useSettled(label);
  const { data, error, reload } = usePoll((signal) => get("queues", { label: wanted }, signal), 3, [wanted]);
  // Queues of dead letters are a number of theirs, and found by their label.
  const rows = data && data.queues.filter((row) => wanted || !row.label.endsWith(".dead"));
  return html`<${Heading} title="Queues" line="Messages that are worked through: each channel sees all of them, each consumer of a channel some."><${NewQueue} after=${reload}/></${Heading}>
    <div class="tools"><${Search} value=${typed} placeholder="Part of a label" onInput=${(text) => { setTyped(text); setParams({ label: text }); }}/></div>
    <${Fault} error=${error}/>
    ${(data || !error) && html`<${Table} label="Queues" columns=${COLUMNS} rows=${rows} rowKey=${(row) => row.label} rowHref=${(row) => link("/queue", { label: row.label })}
      empty=${label ? "No queue has that in its label." : "There is no queue yet."}/>`}`;
}
