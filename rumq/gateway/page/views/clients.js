// Sessions and their clients: searched and sorted by the broker, a page at a time.
import { get } from "../parts/api.js";
import { html, usePoll, useSettled, useState } from "../parts/dom.js";
import { bytes, count, duration, NONE, rate } from "../parts/format.js";
import { reasonOf } from "../parts/consumer.js";
import { Name } from "../parts/name.js";
import { Tag } from "../parts/panel.js";
import { link, setParams } from "../parts/router.js";
import { PAGE_ROWS, Search, Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";
import { MatchingButton } from "./matching_clients.js";

export const title = "Clients";
const SECONDS = 5;

const COLUMNS = [
  { key: "client", title: "Client", sort: "client", grow: true, cell: (row) => html`<${Name} text=${row.client_id} none="(empty)"/>` },
  { key: "user", title: "User", wide: true, cell: (row) => html`<${Name} text=${row.user} none="anonymous"/>` },
  { key: "state", title: "State", cell: (row) => html`<${State} row=${row}/>` },
  { key: "lag", title: "Lag", help: "records of the log that it has not read yet", sort: "lag", number: true, cell: (row) => count(row.behind_records) },
  { key: "age", title: "Oldest", help: "age of the oldest of them", number: true, wide: true, cell: (row) => (row.behind_records ? duration(row.behind_seconds) : NONE) },
  { key: "in-flight", title: "In flight", help: "sent at QoS 1 or 2 and not acknowledged", sort: "in-flight", number: true, cell: (row) => count(row.in_flight) },
  { key: "rate", title: "Messages", help: "published and delivered, average of 10 s", sort: "rate", number: true, cell: (row) => rate(row.rate) },
  { key: "bytes", title: "Bytes", help: "read from it and sent to it, by its connection", sort: "bytes", number: true, wide: true, cell: (row) => bytes(row.bytes_in + row.bytes_out) },
  { key: "lost", title: "Lost", help: "messages that were not delivered to it, by whatever reason", sort: "lost", number: true, cell: (row) => count(row.undelivered) },
  { key: "since", title: "Connected", sort: "since", number: true, wide: true, cell: (row) => duration(row.since_seconds) },
  { key: "protocol", title: "MQTT", wide: true, cell: (row) => row.protocol },
];

function State({ row }) {
  const { kind, tag, line } = reasonOf(row);
  return html`<${Tag} kind=${kind} title=${line}>${tag}</${Tag}>`;
}

// "pump" is searched as "*pump*"; who writes * or ? means it
export const pattern = (text) => (!text ? null : /[*?]/.test(text) ? text : `*${text}*`);

export function view({ client = "", user = "", sort = "client", offset = "0" }) {
  const [typed, setTyped] = useState(client);
  const wanted = useSettled(client);
  const from = Number(offset) || 0;
  const { data, error, reload } = usePoll(
    (signal) => get("clients", { client: pattern(wanted), user, sort, offset: from, limit: PAGE_ROWS }, signal),
    SECONDS, [wanted, user, sort, from],
  );
  function search(text) {
    setTyped(text);
    setParams({ client: text, offset: null });
  }
  return html`<${Heading} title="Clients" line="Sessions, with and without a connection.">
      ${data && (wanted || user) && data.clients.length > 0 && html`<${MatchingButton} asked=${{ client: pattern(wanted), user: user || null }} total=${data.clients.length + data.left_out} after=${reload}/>`}
    <//>
    <div class="tools">
      <${Search} value=${typed} onInput=${search} placeholder="Client id, or a pattern with * and ?"/>
      <label class="search short"><input type="search" value=${user} placeholder="User" aria-label="User" spellcheck=${false} autocomplete="off" onInput=${(event) => setParams({ user: event.target.value, offset: null })}/></label>
    </div>
    <${Fault} error=${error}/>
    <${Table} label="Clients" columns=${COLUMNS} rows=${data && data.clients} rowKey=${(row) => `${row.client_id}/${row.user}`}
      rowHref=${(row) => link("/client", { id: row.client_id })} sort=${sort} onSort=${(next) => setParams({ sort: next, offset: null })}
      offset=${from} limit=${PAGE_ROWS} leftOut=${data ? data.left_out : 0} onOffset=${(next) => setParams({ offset: next || null }, { push: true })}
      empty=${client || user ? "No session matches." : "No client has connected yet."}/>`;
}
