// Consumer groups of Kafka's clients, of all users: state, members, lag.
import { get, unlessMissing } from "../parts/api.js";
import { html, usePoll, useSettled, useState } from "../parts/dom.js";
import { count } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { Tag } from "../parts/panel.js";
import { link, setParams } from "../parts/router.js";
import { PAGE_ROWS, Search, Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";
import { pattern } from "./clients.js";

export const title = "Kafka groups";
const SECONDS = 5;
const place = (row) => link("/kafka-group", { group: row.group, user: row.user });

// behind: records; null: not known
export function Lag({ behind }) {
  return html`<span class=${behind ? "warn" : ""}>${count(behind)}</span>`;
}

export function State({ state }) {
  return html`<${Tag} kind=${state === "Stable" ? "good" : state === "Empty" ? "" : "warn"}>${state}</${Tag}>`;
}

const COLUMNS = [
  { key: "group", title: "Group", grow: true, cell: (row) => html`<${Name} text=${row.group} href=${place(row)}/>` },
  { key: "user", title: "User", cell: (row) => html`<${Name} text=${row.user} none="no login"/>` },
  { key: "state", title: "State", cell: (row) => html`<${State} state=${row.state}/>` },
  { key: "members", title: "Members", number: true, cell: (row) => count(row.members) },
  { key: "lag", title: "Lag", help: "records from what was committed to the end, of all its partitions", number: true, cell: (row) => html`<${Lag} behind=${row.lag}/>` },
  { key: "partitions", title: "Partitions", help: "of which it has committed an offset", number: true, wide: true, cell: (row) => count(row.partitions) },
  { key: "protocol", title: "Assigned by", wide: true, cell: (row) => html`<${Name} text=${row.protocol}/>` },
];

export function view({ group = "", offset = "0" }) {
  const [typed, setTyped] = useState(group);
  const wanted = useSettled(group);
  const from = Number(offset) || 0;
  const { data, error } = usePoll(async (signal) => {
    const found = await unlessMissing(get("kafka_groups", { group: pattern(wanted), offset: from, limit: PAGE_ROWS }, signal), null);
    return found ?? { groups: [], left_out: 0, isAway: true };
  }, SECONDS, [wanted, from]);
  return html`<${Heading} title="Kafka groups" line="Consumers of Kafka's clients that share the partitions of topics; a group belongs to a user."/>
    <div class="tools"><${Search} value=${typed} placeholder="Groups by name" onInput=${(text) => { setTyped(text); setParams({ group: text, offset: null }); }}/></div>
    <${Fault} error=${error}/>
    <${Table} label="Kafka groups" columns=${COLUMNS} rows=${data && data.groups} rowKey=${(row) => `${row.user}\n${row.group}`} rowHref=${place}
      offset=${from} limit=${PAGE_ROWS} leftOut=${data ? data.left_out : 0} onOffset=${(next) => setParams({ offset: next || null }, { push: true })}
      empty=${data && data.isAway ? "There is no Kafka server on this node: kafka.port turns it on." : group ? "No group has such a name." : "There is no group. A consumer with a group.id makes one."}/>`;
}
