// The settings in force, each with its source: searched by key or by what it is for.
import { get } from "../parts/api.js";
import { html, usePoll, useState } from "../parts/dom.js";
import { plural } from "../parts/format.js";
import { Name, visibleLine } from "../parts/name.js";
import { Tag } from "../parts/panel.js";
import { setParams } from "../parts/router.js";
import { Search, Table } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Settings";
const textOf = (value) => (value === null ? "" : JSON.stringify(value));
const isChanged = (row) => row.source !== "default" && !row.source.startsWith("[");
const APPLIES = { "live": "at a reload", "new connections": "to new connections, from a reload on", "another listener": "at a reload, to a new listener in place of this one", "restart": "after a restart" };

const COLUMNS = [
  { key: "key", title: "Setting", cell: (row) => html`<span class="mono">${row.key}</span><div class="narrow small"><${Name} text=${textOf(row.value)} none="none"/></div>` },
  { key: "value", title: "In force", wide: true, cell: (row) => html`<span class="mono"><${Name} text=${textOf(row.value)} none="none"/></span>${row.waits && html`<div><${Tag} kind="warn" title="read by a reload: it is in force after a restart">after a restart ${textOf(row.after_restart)}</${Tag}></div>`}` },
  { key: "source", title: "Source", cell: (row) => html`<${Tag} kind=${isChanged(row) ? "good" : ""}>${visibleLine(row.source, 60)}</${Tag}>` },
  { key: "applies", title: "A change applies", wide: true, cell: (row) => html`<span class="small">${APPLIES[row.applies]}</span>` },
  { key: "line", title: "What it is for", grow: true, wide: true, cell: (row) => html`${row.line}<div class="dim small">${row.bounds && `allowed: ${row.bounds}`}${isChanged(row) && row.default !== null ? `; default: ${textOf(row.default)}` : ""}</div>` },
];

export function view({ find = "", changed = "" }) {
  const [typed, setTyped] = useState(find);
  const { data, error } = usePoll((signal) => get("settings", {}, signal), 15);
  const rows = data && data.settings.filter((row) => (!changed || isChanged(row) || row.waits) && (!find || `${row.key} ${row.line} ${textOf(row.value)}`.toLowerCase().includes(find.toLowerCase())));
  return html`<${Heading} title="Settings" line="In force, each with where it came from. They are changed in the file, the environment or by flags, and read by a reload or a restart."/>
    <div class="tools"><${Search} value=${typed} onInput=${(text) => { setTyped(text); setParams({ find: text }); }} placeholder="Setting, or what it is for"/>
      <div class="segmented" role="group" aria-label="Which"><button type="button" aria-pressed=${!changed} onClick=${() => setParams({ changed: null })}>All</button>
        <button type="button" aria-pressed=${Boolean(changed)} onClick=${() => setParams({ changed: "1" })}>Changed</button></div>
      ${rows && html`<span class="dim">${plural(rows.length, "setting")}</span>`}</div>
    <${Fault} error=${error}/>
    ${!error && html`<${Table} label="Settings" columns=${COLUMNS} rows=${rows} rowKey=${(row) => row.key} empty=${changed ? "All settings are the defaults." : "No setting matches."}/>`}`;
}
