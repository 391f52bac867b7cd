// Who is banned, for how long, and how often they tried; bans are made and lifted here.
import { ActionButton } from "../parts/action.js";
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { count, duration } from "../parts/format.js";
import { Name, visible } from "../parts/name.js";
import { Tag } from "../parts/panel.js";
import { Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";
import { BAN_TIMES } from "./client_actions.js";

export const title = "Bans";
const KINDS = [["client", "A client id"], ["user", "A user"], ["address", "An address, without port"]];

function NewBan({ after }) {
  return html`<${ActionButton} label="Ban …" name="ban" danger confirm="Ban" title="Whom to ban" after=${after}
    fields=${[
      { name: "kind", label: "What it names", type: "choice", value: "client", options: KINDS },
      { name: "name", label: "Name, exactly", value: "" },
      { name: "seconds", label: "For", type: "choice", value: "600", quiet: true, options: BAN_TIMES },
    ]}
    body=${({ kind, name, seconds }) => ({ kind, name, seconds: Number(seconds) })}
    explain="Whoever is named is disconnected now, and refused (0x8A) until the time is over or the ban is lifted, also after a restart. Sessions stay."
    done=${(answer, { seconds }) => `Banned for ${BAN_TIMES.find(([each]) => each === seconds)[1]}.`}/>`;
}

export function view() {
  const { data, error, reload } = usePoll((signal) => get("bans", {}, signal), 5);
  const columns = [
    { key: "kind", title: "Kind", cell: (row) => html`<${Tag}>${row.kind}</${Tag}>` },
    { key: "name", title: "Name", grow: true, cell: (row) => html`<${Name} text=${row.name}/>` },
    { key: "left", title: "Left", number: true, cell: (row) => duration(Math.round(row.seconds)) },
    { key: "refused", title: "Refused", help: "logins refused so far", number: true, cell: (row) => count(row.refused) },
    { key: "lift", title: "", tight: true, cell: (row) => html`<${ActionButton} kind="small" label="Lift …" name="unban" confirm="Lift the ban" after=${reload}
      title=${html`Lift the ban of <bdi dir="ltr">${visible(row.name)}</bdi>?`} body=${{ kind: row.kind, name: row.name }}
      explain="It may connect again at once." done=${(answer) => (answer.done ? "The ban is lifted." : ["It was over already.", "warn"])}/>` },
  ];
  return html`<${Heading} title="Bans" line="Refused for a time, or until the ban is lifted; a restart changes nothing."><${NewBan} after=${reload}/></${Heading}>
    <${Fault} error=${error}/>
    <${Table} label="Bans" columns=${columns} rows=${data && data.bans} rowKey=${(row) => `${row.kind} ${row.name}`} empty="Nobody is banned."/>`;
}
