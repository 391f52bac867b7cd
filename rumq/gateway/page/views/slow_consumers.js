// The consumers that are farthest behind, each with the reason.
import { get } from "../parts/api.js";
import { reasonOf } from "../parts/consumer.js";
import { html, usePoll } from "../parts/dom.js";
import { count, duration, rate } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { Panel, Tag } from "../parts/panel.js";
import { link } from "../parts/router.js";
import { Table } from "../parts/table.js";

const ROWS = 8;
const SECONDS = 8; // the broker goes through all sessions for it
const COLUMNS = [
  { key: "client", title: "Client", cell: (row) => html`<${Name} text=${row.client_id} none="(empty)"/>` },
  { key: "lag", title: "Behind", help: "records of the log that it has not read yet", number: true, cell: (row) => count(row.behind_records) },
  { key: "age", title: "Oldest", help: "age of the oldest of them", number: true, wide: true, cell: (row) => duration(row.behind_seconds) },
  { key: "rate", title: "Delivered", number: true, wide: true, cell: (row) => rate(row.delivered_per_second) },
  { key: "why", title: "Why", grow: true, cell: (row) => {
    const { kind, tag, line, remedy } = reasonOf(row);
    return html`<${Tag} kind=${kind}>${tag}</${Tag}> <span>${line}</span>${remedy && html` <span class="dim remedy">${remedy}</span>`}`;
  } },
];

export function SlowConsumers() {
  const { data, error } = usePoll((signal) => get("clients", { sort: "lag", limit: ROWS }, signal), SECONDS);
  const rows = data && data.clients.filter((row) => row.behind_records > 0);
  return html`<${Panel} flush title="Slow consumers" note="farthest behind first" right=${html`<a href=${link("/clients", { sort: "lag" })}>All by lag</a>`}>
    ${error && error.status ? html`<p class="empty">${error.message}</p>`
      : html`<${Table} label="Slow consumers" columns=${COLUMNS} rows=${rows} rowKey=${(row) => `${row.client_id}/${row.user}`}
        rowHref=${(row) => link("/client", { id: row.client_id })} empty="Every consumer keeps up."/>`}
  </${Panel}>`;
}
