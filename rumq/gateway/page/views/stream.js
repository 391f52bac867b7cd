// One stream: its partitions, and its segments, the files of the log, with what can be done about them.
import { get } from "../parts/api.js";
import { ActionButton } from "../parts/action.js";
import { html, usePoll } from "../parts/dom.js";
import { bytes, count, time } from "../parts/format.js";
import { link, setParams } from "../parts/router.js";
import { PAGE_ROWS, Table } from "../parts/table.js";
import { Fault, Heading, Loading } from "../parts/view_place.js";
import { SealButton, TrimButton } from "./segment_actions.js";

export const title = ({ stream = "" }) => `Stream ${stream}`;
const SECONDS = 5;

export function view({ stream = "", partition = "", offset = "0" }) {
  const from = Number(offset) || 0;
  const { data, error, reload } = usePoll(async (signal) => {
    const [partitions, segments] = await Promise.all([
      get("partitions", {}, signal), get("segments", { stream, partition, offset: from, limit: PAGE_ROWS }, signal),
    ]);
    return { partitions: partitions.partitions.filter((row) => row.stream === stream), segments };
  }, SECONDS, [stream, partition, from]);
  const rows = data && data.partitions;
  const shown = (number) => link("/stream", { stream, partition: String(number) === partition ? null : number });
  const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
  return html`<${Heading} title=${`Stream ${stream}`} line="A stream of the log, its partitions and their files."/>
    <${Fault} error=${error}/>
    ${!rows && !error && html`<${Loading}/>`}
    ${rows && !rows.length && html`<p class="empty">There is no stream of this name.</p>`}
    ${rows && rows.length > 0 && html`<dl class="figures">
      <div><dt>Records kept</dt><dd>${count(rows.reduce((all, row) => all + row.next_lsn - row.first_lsn, 0))}</dd><small>since ${time(Math.min(...rows.map((row) => row.first_time_us || Infinity)) || 0)}</small></div>
      <div><dt>On disk</dt><dd>${bytes(sum("bytes"))}</dd><small>${count(sum("segments"))} segments</small></div>
      <div><dt>Topics</dt><dd>${count(sum("topics"))}</dd><small>${rows[0].topics_max === null ? "no limit" : `at most ${count(rows[0].topics_max)}`}</small></div>
      <div><dt>Durability</dt><dd>${rows[0].durability}</dd><small>of acknowledged messages</small></div></dl>`}
    ${rows && rows.length > 0 && html`<${Table} label="Partitions" columns=${partitionColumns(reload)} rows=${rows} rowKey=${(row) => row.partition} rowHref=${(row) => shown(row.partition)}/>`}
    ${data && rows.length > 0 && html`<div class="tools"><h2>Segments${partition && ` of partition ${partition}`}</h2><span class="dim">files, the newest first</span>
        ${partition && html`<a href=${link("/stream", { stream })}>of all partitions</a>`}</div>
      <${Table} label="Segments" columns=${segmentColumns(rows, reload)} rows=${data.segments.segments} rowKey=${(row) => `${row.partition}/${row.file}`}
        offset=${from} limit=${PAGE_ROWS} leftOut=${data.segments.left_out} onOffset=${(next) => setParams({ offset: next || null }, { push: true })}/>`}`;
}

const partitionColumns = (reload) => [
  { key: "partition", title: "Partition", number: true, cell: (row) => row.partition },
  { key: "shard", title: "Shard", number: true, cell: (row) => row.shard },
  { key: "state", title: "State", cell: (row) => (row.offline ? html`<span class="tag bad" title=${row.offline}>offline</span>` : html`<span class="tag good">accepts</span>`) },
  { key: "lsn", title: "Records", help: "the lsn of the first record that is kept, and the end", number: true, cell: (row) => `${count(row.first_lsn)} … ${count(row.next_lsn)}` },
  { key: "open", title: "Uncommitted", help: "records that may not be acknowledged yet", number: true, wide: true, cell: (row) => count(row.next_lsn - row.committed_lsn) },
  { key: "topics", title: "Topics", number: true, wide: true, cell: (row) => count(row.topics) },
  { key: "bytes", title: "On disk", number: true, cell: (row) => bytes(row.bytes) },
  { key: "oldest", title: "Oldest record", wide: true, cell: (row) => time(row.first_time_us) },
  { key: "newest", title: "Newest record", wide: true, cell: (row) => time(row.last_time_us) },
  { key: "actions", title: "", tight: true, cell: (row) => html`<${SealButton} row=${row} after=${reload}/>` },
];

const segmentColumns = (partitions, reload) => [
  { key: "file", title: "File", grow: true, cell: (row) => html`<span class="mono">${row.file}</span>` },
  { key: "partition", title: "Partition", number: true, cell: (row) => row.partition },
  { key: "lsn", title: "Records", help: "the lsn of its first record, and its end", number: true, cell: (row) => `${count(row.base_lsn)} … ${row.end_lsn === null ? "" : count(row.end_lsn)}` },
  { key: "time", title: "First record", wide: true, cell: (row) => time(row.first_time_us) },
  { key: "bytes", title: "Size", number: true, cell: (row) => bytes(row.bytes) },
  { key: "state", title: "State", cell: (row) => (row.end_lsn === null ? html`<span class="tag good">active</span>`
    : html`${row.sealed ? html`<span class="tag" title="finished and checksummed as a whole">sealed</span>` : html`<span class="tag warn" title="finished, not yet checksummed as a whole">finished</span>`} ${row.indexed && html`<span class="tag" title="has an index of its topics">indexed</span>`}`) },
  { key: "actions", title: "", tight: true, cell: (row) => row.end_lsn !== null && html`<${TrimButton} row=${row} partition=${partitions.find((each) => each.partition === row.partition)} after=${reload}/>` },
];
