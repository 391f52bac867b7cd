// The cluster: nodes and whether they are alive, shards with leader, members, who is in sync and how far behind.
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { bytes, count, plural } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Cluster";
const NODES = [
  { key: "node", title: "Node", grow: true, cell: (row) => html`<${Name} text=${String(row.node)}/>` },
  { key: "alive", title: "State", cell: (row) => (row.alive ? html`<span class="tag good">alive</span>` : html`<span class="tag bad">gone</span>`) },
  { key: "leads", title: "Leads", help: "shards whose records it writes", cell: (row) => list(row.leads) },
  { key: "address", title: "Address", wide: true, cell: (row) => html`<${Name} text=${row.address}/>` },
  { key: "version", title: "Version", wide: true, cell: (row) => row.version || "–" },
];

export function view() {
  const { data, error } = usePoll((signal) => get("cluster", {}, signal), 3);
  if (error && error.status === 404) return html`<${Heading} title="Cluster"/><${Alone}/>`;
  const known = data && data.enabled;
  return html`<${Heading} title="Cluster" line=${known ? html`<${Name} text=${data.cluster}/>` : ""}/>
    <${Fault} error=${error}/>
    ${data && !data.enabled && html`<${Alone}/>`}
    ${known && html`<${Known} ...${data}/>`}`;
}

function Alone() {
  return html`<section class="panel"><header><h2>This broker is alone</h2></header><div class="body explain">
    <p>It belongs to no cluster: its log is on this machine only. An acknowledged message survives the end of the process or a power loss, as the durability of its stream says, and not the loss of the disk.</p>
    <p>Three brokers or more with the same <code>[cluster]</code> keep each shard on several machines; another one takes over within seconds when a leader is lost, and nothing acknowledged is missing.
      A stream of durability <code>quorum</code> acknowledges what a majority has.</p></div></section>`;
}

function Known({ nodes, shards, orders = [] }) {
  const dead = nodes.filter((node) => !node.alive);
  const leaderless = shards.filter((shard) => shard.leader === null || shard.leader === undefined || shard.leader === "");
  const thin = shards.filter((shard) => shard.in_sync.length < shard.members.length);
  return html`<dl class="figures">
      <div><dt>Nodes alive</dt><dd class=${dead.length ? "bad" : ""}>${nodes.length - dead.length} of ${nodes.length}</dd><small>${dead.length ? dead.map((node) => node.node).join(", ") + " gone" : "all"}</small></div>
      <div><dt>Without leader</dt><dd class=${leaderless.length ? "bad" : ""}>${count(leaderless.length)}</dd><small>of ${plural(shards.length, "shard")}</small></div>
      <div><dt>Not all in sync</dt><dd class=${thin.length ? "warn" : ""}>${count(thin.length)}</dd><small>of ${plural(shards.length, "shard")}</small></div>
      <div><dt>Orders</dt><dd>${count(orders.length)}</dd><small>moves that are under way</small></div></dl>
    <${Table} label="Nodes" columns=${NODES} rows=${nodes} rowKey=${(row) => row.node}/>
    <div class="tools"><h2>Shards</h2></div>
    <${Table} label="Shards" columns=${SHARDS} rows=${shards} rowKey=${(row) => row.shard} empty="No shard is known yet."/>
    ${orders.length > 0 && html`<div class="tools"><h2>Orders</h2></div><section class="panel"><div class="body">
      ${orders.map((order, number) => html`<pre key=${number} class="order">${typeof order === "string" ? order : JSON.stringify(order)}</pre>`)}</div></section>`}`;
}

const SHARDS = [
  { key: "shard", title: "Shard", number: true, cell: (row) => row.shard },
  { key: "state", title: "State", cell: (row) => html`<span class="tag ${stateKind(row)}">${row.state || "unknown"}</span>` },
  { key: "leader", title: "Leader", cell: (row) => (row.leader === null || row.leader === undefined || row.leader === "" ? html`<span class="tag bad">none</span>` : html`<${Name} text=${String(row.leader)}/>`) },
  { key: "epoch", title: "Epoch", help: "grows by one with each leader", number: true, wide: true, cell: (row) => count(row.epoch) },
  { key: "members", title: "Members", help: "nodes that keep a copy; those that are in sync have everything that is acknowledged", grow: true, cell: (row) => html`<span class="members">${row.members.map((node) => html`<${Member} key=${node} node=${node} row=${row}/>`)}</span>` },
];

function Member({ node, row }) {
  const isIn = row.in_sync.includes(node);
  const behind = row.behind_bytes ? row.behind_bytes[node] : 0;
  const role = node === row.leader ? "leader" : isIn ? "in sync" : "not in sync";
  return html`<span class="tag ${isIn ? "good" : "warn"}" title=${role}>${String(node)}${node === row.leader ? " ★" : ""}${behind ? ` ${bytes(behind)} behind` : ""}</span>`;
}

const stateKind = (row) => (row.leader === null || row.leader === undefined || row.leader === "" ? "bad" : row.in_sync.length < row.members.length ? "warn" : "good");
const list = (shards) => (shards && shards.length ? shards.join(", ") : html`<span class="dim">none</span>`);
