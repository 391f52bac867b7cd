// Shared groups: members, lag, what members gave back.
import { get } from "../parts/api.js";
import { html, usePoll, useSettled, useState } from "../parts/dom.js";
import { count } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { Tag } from "../parts/panel.js";
import { link, setParams } from "../parts/router.js";
import { PAGE_ROWS, Search, Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";
import { pattern } from "./clients.js";

export const title = "Shared groups";
const MEMBERS_SHOWN = 6;

function Members({ row }) {
  const shown = row.clients.slice(0, MEMBERS_SHOWN);
  return html`<span class="members">${shown.map((client) => html`<${Name} key=${client} text=${client} none="(empty)" href=${link("/client", { id: client })}/> `)}
    ${row.members > shown.length && html`<span class="dim">and ${count(row.members - shown.length)} more</span>`}</span>`;
}

const COLUMNS = [
  { key: "group", title: "Group", sort: "group", grow: true, cell: (row) => html`<${Name} text=${row.group}/><div class="narrow small"><${Members} row=${row}/></div>` },
  { key: "members", title: "Members", number: true, cell: (row) => (row.members ? count(row.members) : html`<${Tag} kind="warn" title="Messages wait until somebody joins">none</${Tag}>`) },
  { key: "lag", title: "Lag", help: "records that were not given to a member yet", number: true, cell: (row) => html`<span class=${row.behind_records ? "warn" : ""}>${count(row.behind_records)}</span>` },
  { key: "returned", title: "Given back", help: "records that a member got and gave back: it left, or did not acknowledge", number: true, wide: true, cell: (row) => count(row.returned_records) },
  { key: "clients", title: "Clients", grow: true, wide: true, cell: (row) => html`<${Members} row=${row}/>` },
];

export function view({ client = "", offset = "0" }) {
  const [typed, setTyped] = useState(client);
  const wanted = useSettled(client);
  const from = Number(offset) || 0;
  const { data, error } = usePoll((signal) => get("groups", { client: pattern(wanted), offset: from, limit: PAGE_ROWS }, signal), 5, [wanted, from]);
  return html`<${Heading} title="Shared groups" line="Each message of a group goes to one of its members; the group has the place in the log."/>
    <div class="tools"><${Search} value=${typed} placeholder="Groups of a client" onInput=${(text) => { setTyped(text); setParams({ client: text, offset: null }); }}/></div>
    <${Fault} error=${error}/>
    <${Table} label="Shared groups" columns=${COLUMNS} rows=${data && data.groups} rowKey=${(row) => row.group} sort="group"
      offset=${from} limit=${PAGE_ROWS} leftOut=${data ? data.left_out : 0} onOffset=${(next) => setParams({ offset: next || null }, { push: true })}
      empty=${client ? "No group has such a member." : "There is no shared group. A client makes one by subscribing to $share/NAME/FILTER."}/>`;
}
