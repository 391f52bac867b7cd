// Records of one topic, the newest first: pages by offset, or from a time on. A row opens its payload and properties.
import { get } from "../parts/api.js";
import { html, useState, usePoll } from "../parts/dom.js";
import { bytes, count, time } from "../parts/format.js";
import { Icon } from "../parts/icons.js";
import { bytesOf, payloadLine } from "../parts/payload.js";
import { PayloadView } from "../parts/payload_view.js";
import { offerReplay } from "../parts/replay_dialog.js";
import { setParams } from "../parts/router.js";
import { UserProperties } from "../parts/user_properties.js";
import { Fault } from "../parts/view_place.js";
import { SearchForm } from "./topic_search.js";

const ROWS = 25;

// next: the offset that the next record will have; end: exclusive end of the page, none: the newest; at: a time to begin at
export function TopicRecords({ topic, next, end, at }) {
  const [open, setOpen] = useState(null);
  const stop = end ? Number(end) : next;
  const { data, error } = usePoll(async (signal) => {
    if (at) return page(await get("records", { topic, start: at, limit: ROWS }, signal), Infinity);
    const start = Math.max(0, stop - ROWS);
    return page(await get("records", { topic, start: String(start), limit: ROWS }, signal), stop);
  }, 0, [topic, at, end ? stop : next]);
  const rows = data && data.records;
  const [newest, oldest] = rows && rows.length ? [rows[0].offset, rows[rows.length - 1].offset] : [stop - 1, stop];
  const isNewest = !at && (!end || stop >= next);
  const show = (params) => setParams({ end: null, at: null, ...params });
  const jump = (event) => {
    event.preventDefault();
    const { when, offset } = event.target.elements;
    if (offset.value !== "") show({ end: Math.min(next, Number(offset.value) + 1) });
    else if (when.value) show({ at: new Date(when.value).toISOString() });
  };
  return html`<section class="panel records"><header><h2>Records</h2>
      <span class="dim">${rows && rows.length ? `offsets ${count(newest)} to ${count(oldest)} of ${count(next)}${isNewest ? ", as they come" : ""}` : ""}</span><span class="spring"></span>
      <${SearchForm}/>
      <form class="jump" onSubmit=${jump}>
        <input type="number" name="offset" min="0" step="1" placeholder="Offset" aria-label="Go to offset"/>
        <input type="datetime-local" name="when" step="1" aria-label="Go to time"/>
        <button type="submit">Go</button></form></header>
    <${Fault} error=${error}/>
    ${data && data.lost > 0 && html`<p class="notice">${count(data.lost)} records of this range cannot be read: damaged, or removed by retention.</p>`}
    <div class="scroll"><table aria-label="Records"><thead><tr><th class="number">Offset</th><th>Time</th><th class="wide">QoS</th><th class="number wide">Size</th><th>Payload</th><th></th></tr></thead>
      <tbody>${rows && rows.map((row) => html`<${RecordRows} key=${row.lsn} topic=${topic} row=${row} isOpen=${open === row.lsn} toggle=${() => setOpen(open === row.lsn ? null : row.lsn)}/>`)}</tbody></table></div>
    ${!rows && !error && html`<p class="empty" role="status">Loading …</p>`}
    ${rows && !rows.length && html`<p class="empty">${at ? "There is no record at or after this time." : "No older record is kept: retention has removed them."}</p>`}
    <nav class="paging" aria-label="Pages of records"><span></span>
      <button type="button" disabled=${isNewest} onClick=${() => show({})}>Newest</button>
      <button type="button" disabled=${isNewest || newest + 1 >= next} onClick=${() => show({ end: Math.min(next, newest + 1 + ROWS) })}><${Icon} name="left"/> Newer</button>
      <button type="button" disabled=${!rows || !rows.length || oldest <= 0} onClick=${() => show({ end: oldest })}>Older <${Icon} name="right"/></button></nav>
  </section>`;
}

// The records below `stop`, the newest first.
const page = (answer, stop) => ({ ...answer, records: answer.records.filter((each) => each.offset < stop).reverse() });

function RecordRows({ topic, row, isOpen, toggle }) {
  const payload = bytesOf(row);
  const keyed = (event) => {
    if (event.target !== event.currentTarget) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
  };
  return html`<tr class="opens" tabindex="0" aria-expanded=${isOpen} onKeyDown=${keyed} onClick=${(event) => !event.target.closest("button, a") && toggle()}>
      <td class="number">${row.offset}</td><td>${time(row.time_us)}</td><td class="wide">${row.qos}${row.retain && html` <span class="tag">retain</span>`}</td><td class="number wide">${bytes(payload.length)}</td>
      <td class="grow"><span class="value">${payloadLine(payload, row.content_type)}</span></td>
      <td class="tight"><button type="button" class="small" onClick=${() => offerReplay(topic, row.offset)}>Replay from here</button></td></tr>
    ${isOpen && html`<tr class="detail"><td colspan="6"><${PayloadView} payload=${payload} contentType=${row.content_type ?? ""}/>
      <dl class="facts properties"><dt>Offset</dt><dd>${row.offset} of the topic</dd><dt>Record</dt><dd>lsn ${row.lsn} of <code>${row.partition}</code></dd><dt>Received</dt><dd>${new Date(row.time_us / 1000).toISOString()}</dd></dl>
      <${UserProperties} list=${row.user_properties}/></td></tr>`}`;
}
