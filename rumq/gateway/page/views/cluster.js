// The cluster: what to act on, nodes and whether they are alive, shards with leader and copies, and the control plane.
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { bytes, count, duration, plural } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Cluster";
const WRONG_MAX = 6; // sentences shown: a node that is gone is one for each of its shards

export function view() {
  const { data, error } = usePoll((signal) => get("cluster", {}, signal), 3);
  if (error && error.status === 404) return html`<${Heading} title="Cluster"/><${Alone}/>`;
  const known = data && data.enabled;
  return html`<${Heading} title="Cluster" line=${known ? html`<${Name} text=${data.cluster} none=""/>${data.node && html`, as <${Name} text=${data.node}/> sees it`}` : ""}/>
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

function Known({ nodes, shards, orders = [], control = null, wrong = [], is_current: isCurrent = true, replicas = 0 }) {
  const gone = nodes.filter((node) => !node.alive);
  const leaderless = shards.filter((shard) => !shard.leader);
  const thin = shards.filter((shard) => shard.in_sync.length < shard.members.length);
  return html`
    ${!isCurrent && html`<p class="fault" role="alert">The control plane does not answer: no leader can change, and this is how it last was.</p>`}
    ${wrong.length > 0 && html`<div class="notice">${wrong.slice(0, WRONG_MAX).map((sentence) => html`<p key=${sentence}>${sentence}</p>`)}
      ${wrong.length > WRONG_MAX && html`<p>and ${count(wrong.length - WRONG_MAX)} more: rumqd cluster status tells all.</p>`}</div>`}
    <dl class="figures">
      <div><dt>Nodes alive</dt><dd class=${gone.length ? "bad" : ""}>${nodes.length - gone.length} of ${nodes.length}</dd><small>${gone.length ? `${gone.map((node) => node.node).join(", ")} gone` : "all"}</small></div>
      <div><dt>Without leader</dt><dd class=${leaderless.length ? "bad" : ""}>${count(leaderless.length)}</dd><small>of ${plural(shards.length, "shard")}</small></div>
      <div><dt>Not all in sync</dt><dd class=${thin.length ? "warn" : ""}>${count(thin.length)}</dd><small>${`of ${plural(shards.length, "shard")}${replicas ? ` × ${plural(replicas, "copy", "copies")}` : ""}`}</small></div>
      <div><dt>Changes</dt><dd>${count(orders.length)}</dd><small>of copies, under way</small></div></dl>
    <${Table} label="Nodes" columns=${NODES} rows=${nodes} rowKey=${(row) => row.id ?? row.node}/>
    <div class="tools"><h2>Shards</h2><span class="dim">★ leads; green: has everything that is acknowledged</span></div>
    <${Table} label="Shards" columns=${SHARDS} rows=${shards} rowKey=${(row) => row.shard} empty="No shard is known yet."/>
    ${orders.length > 0 && html`<div class="tools"><h2>Changes of copies</h2></div><${Table} label="Changes" columns=${ORDERS} rows=${orders} rowKey=${(row) => `${row.shard}/${row.order}`}/>`}
    ${control && html`<${Control} ...${control}/>`}`;
}

const NODES = [
  { key: "node", title: "Node", grow: true, cell: (row) => html`<${Name} text=${row.node} title=${row.id}/>${row.zone && html` <span class="dim">${row.zone}</span>`}` },
  { key: "alive", title: "State", cell: (row) => (!row.alive ? html`<span class="tag bad">gone</span>` : row.leaves ? html`<span class="tag warn">drained</span>` : html`<span class="tag good">alive</span>`) },
  { key: "leads", title: "Leads", help: "shards whose records it writes", cell: (row) => list(row.leads) },
  { key: "copies", title: "Copies", help: "shards of which it has a copy", wide: true, cell: (row) => list(row.copies) },
  { key: "mqtt", title: "For clients", wide: true, cell: (row) => html`<${Name} text=${(row.mqtt ?? []).join(", ")}/>` },
  { key: "address", title: "For nodes", wide: true, cell: (row) => html`<${Name} text=${row.address}/>` },
  { key: "version", title: "Version", wide: true, cell: (row) => row.version || "–" },
];

const STATES = { ok: "good", behind: "warn", changing: "warn", opening: "warn", "no quorum": "bad", "no leader": "bad" };
const SHARDS = [
  { key: "shard", title: "Shard", number: true, cell: (row) => row.shard },
  { key: "state", title: "State", cell: (row) => html`<span class="tag ${STATES[row.state] ?? ""}">${row.state || "unknown"}</span>` },
  { key: "leader", title: "Leader", cell: (row) => (row.leader ? html`<${Name} text=${row.leader}/>` : html`<span class="tag bad">none</span>`) },
  { key: "members", title: "Copies", help: "the bytes are those that a copy lacks", grow: true, cell: (row) => html`<span class="members">${[...row.members].sort().map((node) => html`<${Copy} key=${node} node=${node} row=${row}/>`)}
    ${(row.learners ?? []).map((node) => html`<span class="tag" key=${node} title="is being filled, without a vote">${node}, filled</span>`)}</span>` },
  { key: "epoch", title: "Epoch", help: "one higher with each leader", number: true, wide: true, cell: (row) => count(row.epoch) },
  { key: "changes", title: "Leaders lost", help: "that were replaced, and that gave the lead away; seen by the asked node", number: true, wide: true, cell: (row) => (row.failovers === undefined ? "–" : `${count(row.failovers)}${row.hand_overs ? `, ${count(row.hand_overs)} handed over` : ""}`) },
];

function Copy({ node, row }) {
  const leads = node === row.leader;
  const isIn = row.in_sync.includes(node);
  const lacks = (row.behind_bytes ?? {})[node];
  const note = leads ? " ★" : lacks === null ? ", away" : lacks ? `, ${bytes(lacks)} behind` : "";
  return html`<span class="tag ${isIn ? "good" : "warn"}" title=${leads ? "leads" : isIn ? "in sync" : "not in sync"}>${node}${note}</span>`;
}

const ORDERS = [
  { key: "shard", title: "Shard", number: true, cell: (row) => row.shard },
  { key: "order", title: "Change", help: "fill: copies learn; members: old and new ones decide together", cell: (row) => row.order },
  { key: "nodes", title: "Nodes", grow: true, cell: (row) => (row.nodes ?? []).join(", ") },
];

function Control({ kind, members, lost_seconds: lost, renew_seconds: renew }) {
  return html`<div class="tools"><h2>Control plane</h2><span class="dim">${kind}, ${lost ? html`<span class="bad">no answer for ${duration(lost)}</span>` : `the lease was renewed in ${duration(renew)}`}</span></div>
    ${members.length > 0 && html`<${Table} label="Control plane" columns=${MEMBERS} rows=${members} rowKey=${(row) => row.endpoint}/>`}`;
}

const MEMBERS = [
  { key: "endpoint", title: "Member", grow: true, cell: (row) => html`<${Name} text=${row.endpoint}/>` },
  { key: "answers", title: "State", cell: (row) => (row.answers ? html`<span class="tag good">${row.leads ? "leads" : "follows"}</span>` : html`<span class="tag bad" title=${row.why}>does not answer</span>`) },
  { key: "seconds", title: "Answered in", number: true, cell: (row) => duration(row.answers ? row.seconds : null) },
  { key: "stored", title: "Stored", number: true, wide: true, cell: (row) => bytes(row.answers ? row.stored_bytes : null) },
  { key: "version", title: "Version", wide: true, cell: (row) => row.version || "–" },
];

const list = (shards) => (shards && shards.length ? shards.join(", ") : html`<span class="dim">none</span>`);
