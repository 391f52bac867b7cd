// What is traced, for how long, and what was reported; traces are begun and ended here.
import { ActionButton } from "../parts/action.js";
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { count, duration } from "../parts/format.js";
import { Name, visible } from "../parts/name.js";
import { Tag } from "../parts/panel.js";
import { link } from "../parts/router.js";
import { Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";
import { TRACE_TIMES } from "./client_actions.js";

export const title = "Traces";

const hrefOf = (row) => (row.kind === "client" ? link("/client", { id: row.name }) : link("/topic", { topic: row.name }));

function NewTrace({ after }) {
  return html`<${ActionButton} label="Trace …" kind="main" name="trace" confirm="Trace" title="What to trace" after=${after}
    fields=${[
      { name: "kind", label: "What", type: "choice", value: "client", options: [["client", "The packets of a client"], ["topic", "The messages of a topic"]] },
      { name: "name", label: "Client id, or topic (no wildcards)", value: "" },
      { name: "seconds", label: "For", type: "choice", value: "60", quiet: true, options: TRACE_TIMES },
    ]}
    body=${({ kind, name, seconds }) => ({ kind, name, seconds: Number(seconds) })}
    explain="Each packet or message becomes an event, here and in the broker's log, without its payload. At most 100 a second for each trace, and 16 traces at once."
    done=${() => "It is traced. Open its row to see what comes."}/>`;
}

export function view() {
  const { data, error, reload } = usePoll((signal) => get("traces", {}, signal), 3);
  const columns = [
    { key: "kind", title: "Kind", cell: (row) => html`<${Tag}>${row.kind}</${Tag}>` },
    { key: "name", title: "Name", grow: true, cell: (row) => html`<${Name} text=${row.name}/>` },
    { key: "left", title: "Left", number: true, cell: (row) => duration(Math.round(row.seconds)) },
    { key: "reported", title: "Reported", help: "events so far", number: true, cell: (row) => count(row.reported) },
    { key: "left-out", title: "Left out", help: "beyond 100 a second", number: true, wide: true, cell: (row) => count(row.left_out) },
    { key: "end", title: "", tight: true, cell: (row) => html`<${ActionButton} kind="small" label="End …" name="untrace" confirm="End the trace" after=${reload}
      title=${html`End the trace of <bdi dir="ltr">${visible(row.name)}</bdi>?`} body=${{ kind: row.kind, name: row.name }}
      explain="What was reported stays in the broker's log." done=${(answer) => (answer.done ? "The trace has ended." : ["It had ended already.", "warn"])}/>` },
  ];
  return html`<${Heading} title="Traces" line="Packets of a client, or messages of a topic, reported as events for a time."><${NewTrace} after=${reload}/></${Heading}>
    <${Fault} error=${error}/>
    <${Table} label="Traces" columns=${columns} rows=${data && data.traces} rowKey=${(row) => `${row.kind} ${row.name}`} rowHref=${hrefOf} empty="Nothing is traced."/>`;
}
