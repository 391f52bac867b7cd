// Exports to the lake: how far each partition is, and how far behind.
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { count, percent } from "../parts/format.js";
import { link } from "../parts/router.js";
import { Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Exports";
const COLUMNS = [
  { key: "stream", title: "Stream", grow: true, cell: (row) => html`<a href=${link("/stream", { stream: row.stream })}>${row.stream}</a> ${row.partition}` },
  { key: "state", title: "State", cell: (row) => (row.behind_records ? html`<span class="tag warn">behind</span>` : html`<span class="tag good">up to date</span>`) },
  { key: "done", title: "Exported", help: "of the sealed records", cell: (row) => html`<span class="progress"><span class="bar ${row.behind_records ? "warn" : ""}"><i style=${{ width: percent(row.exported_lsn, row.sealed_lsn).replace(" ", "").replace("–", "0") }}></i></span>
    <span class="dim">${percent(row.exported_lsn, row.sealed_lsn)}</span></span>` },
  { key: "exported", title: "In the lake to", help: "lsn, exclusive", number: true, cell: (row) => count(row.exported_lsn) },
  { key: "sealed", title: "Sealed to", help: "what is below can be exported; lsn, exclusive", number: true, wide: true, cell: (row) => count(row.sealed_lsn) },
  { key: "behind", title: "Behind", help: "records that are sealed and not exported yet", number: true, cell: (row) => count(row.behind_records) },
];

export function view() {
  const { data, error } = usePoll((signal) => get("exports", {}, signal), 5);
  const rows = data && data.exports;
  const behind = rows ? rows.reduce((all, row) => all + row.behind_records, 0) : 0;
  return html`<${Heading} title="Exports" line="Sealed segments become tables of the lake (Parquet, Delta), which Spark and others read."/>
    <${Fault} error=${error}/>
    ${rows && !rows.length ? html`<section class="panel"><header><h2>Nothing is exported</h2></header><div class="body explain">
        <p>No stream has a lake. With one, each sealed segment is written there as Parquet files that Spark, DuckDB and Polars read.</p>
        <p>In <code>config.toml</code>:</p><pre>${'[log]\nexport_to = "/mnt/lake"'}</pre></div></section>`
    : html`${rows && html`<dl class="figures"><div><dt>Partitions</dt><dd>${count(rows.length)}</dd><small>exported</small></div>
        <div><dt>Behind</dt><dd class=${behind ? "warn" : ""}>${count(behind)}</dd><small>records sealed and not exported</small></div></dl>`}
      <${Table} label="Exports" columns=${COLUMNS} rows=${rows} rowKey=${(row) => `${row.stream}/${row.partition}`}/>`}`;
}
