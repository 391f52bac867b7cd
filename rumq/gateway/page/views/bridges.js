// Bridges to other brokers: how each is connected, since when, why not, and what it has relayed each way.
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { ago, bytes, count, time } from "../parts/format.js";
import { Name, visible } from "../parts/name.js";
import { Panel, Tag } from "../parts/panel.js";
import { setParams } from "../parts/router.js";
import { PAGE_ROWS, Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Bridges";
const SECONDS = 5;
const LOSSES = [
  ["doubtful", "Doubtful", "sent again to a broker that had lost its session: it may have them twice"],
  ["refused", "Refused", "the other side refused them for good"],
  ["looped", "Looped", "left out: they have been there"],
  ["dropped", "Dropped", "of QoS 0, the other side was too slow"],
  ["unmapped", "Unmapped", "no rule of the bridge names them now"],
];
const BAD = new Set(["doubtful", "refused", "dropped"]);

const CONNECTIONS = [
  { key: "name", title: "Bridge", cell: (row) => html`<${Name} text=${row.name}/>` },
  { key: "state", title: "State", cell: (row) => (row.connected ? html`<${Tag} kind="good">connected</${Tag}>` : html`<${Tag} kind="warn">not connected</${Tag}>`) },
  { key: "since", title: "Since", cell: (row) => html`<span title=${time(row.since_us)}>${ago(row.since_us)}</span>` },
  { key: "address", title: "Other broker", help: "its address in use, or tried now", cell: (row) => html`<${Name} text=${row.address}/>` },
  { key: "mqtt", title: "MQTT", help: "of the last connection", cell: (row) => html`<${Name} text=${row.mqtt}/>` },
  { key: "connections", title: "Connections", help: "since the bridges' process began", number: true, wide: true, cell: (row) => count(row.connections) },
  { key: "why", title: "Last failure", grow: true, cell: (row) => html`<bdi dir="ltr" class=${row.connected || !row.why ? "dim" : ""}>${row.why ? visible(row.why) : "none"}</bdi>` },
];
const RELAYED = [
  { key: "name", title: "Bridge", grow: true, cell: (row) => html`<${Name} text=${row.name}/>` },
  { key: "way", title: "Way", cell: (row) => row.way },
  { key: "messages", title: "Messages", help: "that the target has taken", number: true, cell: (row) => count(row.messages) },
  { key: "bytes", title: "Payloads", number: true, cell: (row) => bytes(row.bytes) },
  ...LOSSES.map(([key, title, help]) => ({ key, title, help, number: true, wide: !BAD.has(key), cell: (row) => html`<span class=${row[key] && BAD.has(key) ? "warn" : ""}>${count(row[key])}</span>` })),
];
const ways = (row) => [{ name: row.name, way: "out", ...row.outgoing }, { name: row.name, way: "in", ...row.incoming }];

export function view({ offset = "0" }) {
  const from = Number(offset) || 0;
  const { data, error } = usePoll((signal) => get("bridges", { offset: from, limit: PAGE_ROWS }, signal), SECONDS, [from]);
  const rows = data && data.bridges;
  const elsewhere = data && data.elsewhere;
  const none = rows && !rows.length && !from;
  return html`<${Heading} title="Bridges" line="Connections to other MQTT brokers that relay messages; what waits meanwhile waits in sessions at both."/>
    <${Fault} error=${error}/>
    ${elsewhere && html`<p class="notice" role="status">In this cluster one node runs the bridges: ${visible(elsewhere)}.</p>`}
    ${none && !elsewhere && html`<section class="panel"><header><h2>There is no bridge</h2></header><div class="body explain">
        <p>A bridge relays messages to another broker, from it, or both ways. In <code>config.toml</code>:</p>
        <pre>${'[[bridge]]\nname = "centre"\nurl = "mqtts://centre.example"\ntopics = ["plant/# out 2", "commands/# in 2"]'}</pre></div></section>`}
    ${!none && html`<${Table} label="Bridges" columns=${CONNECTIONS} rows=${rows} rowKey=${(row) => row.name}
      offset=${from} limit=${PAGE_ROWS} leftOut=${data ? data.left_out : 0} onOffset=${(next) => setParams({ offset: next || null }, { push: true })}/>`}
    ${!none && rows && html`<${Panel} title="Relayed" note="since the process of the bridges began" flush><${Table} label="Relayed" columns=${RELAYED}
      rows=${rows.flatMap(ways)} rowKey=${(row) => `${row.name} ${row.way}`}/></${Panel}>`}`;
}
