// Streams with what they hold, and the size of the log over hours.
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { bytes, count } from "../parts/format.js";
import { LogPlot } from "../parts/log_plot.js";
import { link } from "../parts/router.js";
import { Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Streams";
const DURABILITY = {
  process: "an acknowledged message survives the end of the process", disk: "an acknowledged message survives a power loss",
  quorum: "an acknowledged message survives the loss of a node", memory: "nothing survives the end of the process",
};
const COLUMNS = [
  { key: "stream", title: "Stream", grow: true, cell: (row) => html`<span class="mono">${row.stream}</span>` },
  { key: "durability", title: "Durability", help: "what an acknowledged message survives", cell: (row) => html`<span class="tag" title=${DURABILITY[row.durability]}>${row.durability}</span>` },
  { key: "state", title: "State", cell: (row) => (row.offline ? html`<span class="tag bad">${row.offline} offline</span>` : html`<span class="tag good">accepts</span>`) },
  { key: "partitions", title: "Partitions", number: true, cell: (row) => count(row.partitions) },
  { key: "topics", title: "Topics", number: true, wide: true, cell: (row) => count(row.topics) },
  { key: "records", title: "Records kept", number: true, cell: (row) => count(row.records) },
  { key: "segments", title: "Segments", number: true, wide: true, cell: (row) => count(row.segments) },
  { key: "bytes", title: "On disk", number: true, cell: (row) => bytes(row.bytes) },
  { key: "pending", title: "Unwritten", help: "appended and not yet written", number: true, wide: true, cell: (row) => bytes(row.pending_bytes) },
];

export function view() {
  const { data, error } = usePoll((signal) => get("streams", {}, signal), 5);
  return html`<${Heading} title="Streams" line="The parts of the log, each with its own retention and durability. A stream divides its topics among its partitions."/>
    <${Fault} error=${error}/>
    <${Table} label="Streams" columns=${COLUMNS} rows=${data && data.streams} rowKey=${(row) => row.stream} rowHref=${(row) => link("/stream", { stream: row.stream })}/>
    <${LogPlot}/>`;
}
