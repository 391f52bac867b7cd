// The processes of the broker and its listeners, and what concerns the broker as a whole: drain, reload, shut down.
// In a cluster those of every node, each shard at its leader; docs/reference/gateway.md, "In a cluster", has what an action reaches.
import { ActionButton } from "../parts/action.js";
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { bytes, count, duration } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { Bar, Panel, Tag } from "../parts/panel.js";
import { Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Shards and listeners";

function State({ row }) {
  if (!row.ready) return html`<${Tag} kind="warn" title="Sessions of earlier runs are not here yet">recovering</${Tag}>`;
  if (row.draining) return html`<${Tag} kind="warn" title="Clients are refused and disconnected">draining</${Tag}>`;
  if (!row.accepting) return html`<${Tag} kind="bad" title="A partition is offline, or the disk is full">refuses messages</${Tag}>`;
  return html`<${Tag} kind="good">ready</${Tag}>`;
}

const shardColumns = (leaders) => [
  { key: "shard", title: "Shard", number: true, tight: true, cell: (row) => row.shard },
  ...(leaders ? [{ key: "node", title: "Node", help: "that leads it", cell: (row) => html`<${Name} text=${leaders.get(row.shard) ?? ""}/>` }] : []),
  { key: "state", title: "State", cell: (row) => html`<${State} row=${row}/>` },
  { key: "connected", title: "Connected", number: true, cell: (row) => count(row.connected) },
  { key: "sessions", title: "Sessions", number: true, cell: (row) => count(row.sessions) },
  { key: "topics", title: "Topics", number: true, wide: true, cell: (row) => count(row.topics) },
  { key: "retained", title: "Retained", number: true, wide: true, cell: (row) => count(row.retained) },
  { key: "log", title: "Log", number: true, cell: (row) => bytes(row.log_bytes) },
  { key: "memory", title: "Memory", number: true, cell: (row) => bytes(row.memory_bytes) },
  { key: "over", title: "Handed over", help: "messages for partitions of other shards", number: true, wide: true, cell: (row) => count(row.handed_over) },
  { key: "lost", title: "Not delivered", number: true, wide: true, cell: (row) => count(row.undelivered) },
  { key: "uptime", title: "Up", number: true, wide: true, cell: (row) => duration(row.uptime_seconds) },
  { key: "pid", title: "Process", number: true, wide: true, cell: (row) => row.pid },
];

const LISTENERS = [
  { key: "number", title: "No.", number: true, tight: true, cell: (row) => row.listener },
  { key: "name", title: "Address", grow: true, cell: (row) => html`<${Name} text=${row.name}/>` },
  { key: "mount", title: "Mount point", wide: true, cell: (row) => html`<${Name} text=${row.mount_point}/>` },
  { key: "connected", title: "Connected", number: true, cell: (row) => count(row.connected) },
  { key: "max", title: "At most", number: true, cell: (row) => count(row.connections_max) },
  { key: "part", title: "Used", wide: true, cell: (row) => {
    const part = row.connections_max ? row.connected / row.connections_max : 0;
    return html`<${Bar} part=${part} kind=${part >= 1 ? "bad" : part > 0.8 ? "warn" : ""} title=${`${(part * 100).toFixed(1)} %`}/>`;
  } },
];

export function view() {
  const shards = usePoll((signal) => get("shards", {}, signal), 5);
  const listeners = usePoll((signal) => get("listeners", {}, signal), 5);
  const { data: cluster } = usePoll((signal) => get("cluster", {}, signal), 15); // without an answer it is as in a broker alone
  const node = cluster && cluster.enabled ? html`<${Name} text=${cluster.node}/>` : null;
  const leaders = node && new Map(cluster.shards.map((row) => [row.shard, row.leader]));
  const rows = shards.data && [...shards.data.shards].sort((a, b) => a.shard - b.shard);
  const draining = rows && rows.some((row) => row.draining);
  return html`<${Heading} title="Shards and listeners" line=${node ? "The processes of all nodes, and where clients come in." : "The broker's processes, and where clients come in."}>
      <${ActionButton} label="Reload …" name="reload" confirm="Reload" title="Read the settings again?" after=${shards.reload}
        explain=${html`<p>${node && html`<b>Of this node, ${node}, only:</b> `}Settings, users, rules and certificates are read again, as SIGHUP does. Invalid ones are refused, and nothing changes; what needs a restart is named by the event settings.reloaded.</p>`}
        done=${() => "The settings are being read: the events say what has changed."}/>
      ${draining
        ? html`<${ActionButton} label="End the drain …" name="undrain" confirm="Accept clients" title="Accept clients again?" after=${shards.reload} explain="New clients are accepted at once." done=${() => "Clients are accepted."}/>`
        : html`<${ActionButton} label="Drain …" danger name="drain" confirm="Drain" title=${node ? "Disconnect every client of the cluster?" : "Disconnect every client?"} after=${shards.reload}
            explain=${html`<p><b>Every client is disconnected (0x8B) and new ones are refused (0x88)</b> until the drain is ended here, also after a restart; /readyz says "not ready", so that a load balancer goes elsewhere. Sessions and the log stay.</p>
              ${node && html`<p>This is for all nodes. To drain one of them, there: <code>rumqd cluster drain</code>.</p>`}`}
            done=${(answer) => `${count(answer.done)} clients were disconnected.`}/>`}
      <${ActionButton} label="Shut down …" danger name="shutdown" confirm=${node ? "Shut the node down" : "Shut the broker down"} title=${node ? html`Stop the node ${node}?` : "Stop the broker?"}
        explain=${html`<p><b>${node ? "This node stops" : "The broker stops"}, and this page with it.</b> ${node && "Other nodes lead its shards then. "} MQTT 5 clients are told (0x8B), everything acknowledged is on disk. It does not start again by itself, unless a service manager does it.</p>`}
        done=${() => (node ? "The node stops." : "The broker stops.")}/>
    </${Heading}>
    <${Fault} error=${shards.error ?? listeners.error}/>
    <${Panel} flush title="Shards" note=${rows ? "one process each" : ""}><${Table} label="Shards" columns=${shardColumns(leaders)} rows=${rows} rowKey=${(row) => row.shard}/></${Panel}>
    <${Panel} flush title="Listeners" note=${node ? "connections of all nodes together; the address and the limit are of one of them" : ""}><${Table} label="Listeners" columns=${node ? LISTENERS.filter(({ key }) => key !== "part") : LISTENERS} rows=${listeners.data && listeners.data.listeners} rowKey=${(row) => row.listener}/></${Panel}>`;
}
