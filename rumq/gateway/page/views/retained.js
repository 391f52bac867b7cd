// Retained messages by topic filter, in the order of topics.
import { get } from "../parts/api.js";
import { html, useSettled, usePoll, useState } from "../parts/dom.js";
import { bytes, time } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { bytesOf, payloadLine } from "../parts/payload.js";
import { Restricted } from "../parts/restricted.js";
import { link, setParams } from "../parts/router.js";
import { PAGE_ROWS, Search, Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";
import { ClearButton } from "./retained_actions.js";
import { filterOf } from "./topics.js";

export const title = "Retained messages";
const columns = (after) => [
  { key: "topic", title: "Topic", grow: true, cell: (row) => html`<${Name} text=${row.topic}/>` },
  { key: "payload", title: "Payload", cell: (row) => html`<span class="value">${payloadLine(bytesOf(row))}</span>` },
  { key: "bytes", title: "Size", number: true, wide: true, cell: (row) => bytes(row.bytes) },
  { key: "qos", title: "QoS", number: true, wide: true, cell: (row) => row.qos },
  { key: "time", title: "Published", wide: true, cell: (row) => time(row.time_us) },
  { key: "delete", title: "", tight: true, cell: (row) => html`<${ClearButton} filter=${row.topic} after=${after}/>` },
];

export function view({ topic = "", after = "" }) {
  const [typed, setTyped] = useState(topic);
  const filter = filterOf(useSettled(topic)) || "#";
  const { data, error, reload } = usePoll((signal) => get("retained", { topic: filter, after, limit: PAGE_ROWS }, signal), 10, [filter, after]);
  const search = (text) => {
    setTyped(text);
    setParams({ topic: text, after: null });
  };
  const rows = data && data.messages;
  return html`<${Heading} title="Retained messages" line="The message of each topic that a new subscriber gets first. An empty one with RETAIN deletes it.">
      ${data && data.messages.length > 0 && html`<${ClearButton} label="Delete all that match …" kind="" filter=${filter} many=${after || data.left_out ? "All that match, more than are shown here," : String(data.messages.length)} after=${reload}/>`}
    <//>
    <div class="tools"><${Search} value=${typed} onInput=${search} placeholder="Topic filter, such as plant/#"/></div>
    <${Restricted} payloads/>
    <${Fault} error=${error}/>
    <${Table} label="Retained messages" columns=${columns(reload)} rows=${rows} rowKey=${(row) => row.topic} rowHref=${(row) => link("/topic", { topic: row.topic })}
      empty=${topic ? "No retained message matches." : "There is no retained message."}/>
    ${rows && (after || data.left_out > 0) && html`<nav class="paging" aria-label="Pages"><span>${data.left_out > 0 ? "There are more." : ""}</span>
      <button type="button" disabled=${!after} onClick=${() => setParams({ after: null }, { push: true })}>First</button>
      <button type="button" disabled=${!data.left_out} onClick=${() => setParams({ after: rows[rows.length - 1].topic }, { push: true })}>Next</button></nav>`}`;
}
