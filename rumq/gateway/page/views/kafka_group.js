// One consumer group of Kafka's clients: how far it is in each partition, and who is in it.
import { get, unlessMissing } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { ago, count, time } from "../parts/format.js";
import { Name, visibleLine } from "../parts/name.js";
import { Panel } from "../parts/panel.js";
import { link, setParams } from "../parts/router.js";
import { PAGE_ROWS, Table } from "../parts/table.js";
import { Fault, Heading, Loading } from "../parts/view_place.js";
import { Lag } from "./kafka_groups.js";

export const title = ({ group = "" }) => visibleLine(group);
const SECONDS = 5;

const PARTITIONS = [
  { key: "topic", title: "Topic", grow: true, cell: (row) => html`<${Name} text=${row.topic}/>` },
  { key: "partition", title: "Partition", number: true, cell: (row) => String(row.partition) },
  { key: "lag", title: "Lag", help: "records from what was committed to the end", number: true, cell: (row) => html`<${Lag} behind=${row.lag}/>` },
  { key: "committed", title: "Committed", help: "the next record that it is to read", number: true, cell: (row) => count(row.committed) },
  { key: "end", title: "End", number: true, cell: (row) => count(row.end) },
  { key: "first", title: "First", help: "the first record that is kept", number: true, wide: true, cell: (row) => count(row.first) },
  { key: "when", title: "When", help: "it was committed", wide: true, cell: (row) => html`<span title=${time(row.committed_us)}>${ago(row.committed_us)}</span>` },
  { key: "reader", title: "Read by", grow: true, cell: (row) => html`<${Name} text=${row.client_id} none="nobody"/>` },
];
const MEMBERS = [
  { key: "client", title: "Client", grow: true, cell: (row) => html`<${Name} text=${row.client_id}/>` },
  { key: "host", title: "Address", cell: (row) => html`<${Name} text=${row.host}/>` },
  { key: "partitions", title: "Partitions", help: "that it was assigned, the first ones", grow: true, cell: (row) => html`<${Name} text=${row.partitions.join(" ")}/>` },
  { key: "instance", title: "Instance", help: "of a static member", wide: true, cell: (row) => html`<${Name} text=${row.instance_id}/>` },
  { key: "member", title: "Member id", wide: true, cell: (row) => html`<${Name} text=${row.member_id}/>` },
];

export function view({ group = "", user = "", offset = "0", members = "0" }) {
  const from = Number(offset) || 0, first = Number(members) || 0;
  const { data, error } = usePoll(async (signal) => {
    const [lag, joined] = await Promise.all([
      unlessMissing(get("kafka_lag", { group, user, offset: from, limit: PAGE_ROWS }, signal), null),
      unlessMissing(get("kafka_members", { group, user, offset: first, limit: PAGE_ROWS }, signal), null),
    ]);
    return { lag, joined };
  }, SECONDS, [group, user, from, first], { keep: false });
  const lag = data && data.lag, joined = data && data.joined;
  return html`<${Heading} title=${html`<${Name} text=${group}/>`} line=${html`one of the <a href=${link("/kafka-groups")}>Kafka groups</a>${user && html`, of user <${Name} text=${user}/>`}`}/>
    <${Fault} error=${error}/>
    ${!data && !error && html`<${Loading}/>`}
    ${data && !lag && html`<p class="empty">There is no such group: it has no members, and nothing is committed.</p>`}
    ${lag && html`<${Panel} title="Partitions" flush><${Table} label="Partitions" columns=${PARTITIONS} rows=${lag.partitions} rowKey=${(row) => `${row.topic}/${row.partition}`}
      offset=${from} limit=${PAGE_ROWS} leftOut=${lag.left_out} onOffset=${(next) => setParams({ offset: next || null }, { push: true })} empty="It has committed nothing."/></${Panel}>`}
    ${joined && html`<${Panel} title="Members" flush><${Table} label="Members" columns=${MEMBERS} rows=${joined.members} rowKey=${(row) => row.member_id}
      offset=${first} limit=${PAGE_ROWS} leftOut=${joined.left_out} onOffset=${(next) => setParams({ members: next || null }, { push: true })} empty="Nobody is in it now."/></${Panel}>`}`;
}
