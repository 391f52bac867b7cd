// Records of a topic whose payload has a text, the oldest first, and all records, or these, as a file.
import { get } from "../parts/api.js";
import { openDialog } from "../parts/dialog.js";
import { html, useEffect, useRef, useState } from "../parts/dom.js";
import { bytes, count, plural, time } from "../parts/format.js";
import { visible } from "../parts/name.js";
import { bytesOf, payloadLine } from "../parts/payload.js";
import { BYTES_MAX, collected, fileName, RECORDS_MAX, save } from "../parts/record_download.js";
import { setParams } from "../parts/router.js";
import { Fault } from "../parts/view_place.js";

const ROWS = 50;

export function SearchForm({ text }) {
  const submit = (event) => {
    event.preventDefault();
    setParams({ find: event.target.elements.find.value || null, end: null, at: null }, { push: true });
  };
  return html`<form class="jump" onSubmit=${submit}><input type="search" name="find" defaultValue=${text ?? ""} placeholder="Text in payloads" aria-label="Text in payloads" spellcheck=${false}/>
    <button type="submit">Search</button></form>`;
}

// text: in the payloads; the log is read from its beginning, a bounded part with each request
export function Found({ topic, text }) {
  const [state, setState] = useState({ rows: [], cursor: null, busy: true, error: null, isOver: false });
  const aborter = useRef(null);
  async function more(from, before) {
    aborter.current?.abort();
    const mine = (aborter.current = new AbortController());
    setState({ rows: before, cursor: from, busy: true, error: null, isOver: false });
    try {
      const answer = await get("records", { topic, contains: text, cursor: from, limit: ROWS }, mine.signal);
      const isOver = !answer.more;
      if (!mine.signal.aborted) setState({ rows: [...before, ...answer.records], cursor: answer.cursor, busy: false, error: null, isOver });
    } catch (error) {
      if (!mine.signal.aborted) setState({ rows: before, cursor: from, busy: false, error, isOver: false });
    }
  }
  useEffect(() => {
    more(null, []);
    return () => aborter.current?.abort();
  }, [topic, text]);
  const { rows, busy, error, isOver } = state;
  return html`<section class="panel records" id="found"><header><h2>Payloads with ${visible(text)}</h2>
      <span class="dim" role="status">${busy ? `searching …, ${plural(rows.length, "record")} so far` : `${plural(rows.length, "record")}${isOver ? " in all" : " so far"}`}</span><span class="spring"></span>
      <${SearchForm} text=${text}/><button type="button" onClick=${() => setParams({ find: null })}>All records</button></header>
    <${Fault} error=${error}/>
    <div class="scroll"><table aria-label="Found records"><thead><tr><th class="number">Offset</th><th>Time</th><th class="number wide">Size</th><th>Payload</th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.lsn} class="opens" onClick=${() => setParams({ find: null, end: row.offset + 1 }, { push: true })}><td class="number"><button type="button" class="plain link" title="Show it among the records">${row.offset}</button></td><td>${time(row.time_us)}</td>
        <td class="number wide">${bytes(bytesOf(row).length)}</td><td class="grow"><span class="value">${payloadLine(bytesOf(row), row.content_type)}</span></td></tr>`)}</tbody></table></div>
    ${!busy && !rows.length && html`<p class="empty">${isOver ? "No payload has this text." : "None so far: there is more of the log to look at."}</p>`}
    <nav class="paging"><span></span><button type="button" disabled=${busy || isOver} onClick=${() => more(state.cursor, rows)}>Go on</button></nav></section>`;
}

export function DownloadButton({ topic, text }) {
  return html`<button type="button" onClick=${() => openDialog(Download, { topic, text })}>Download …</button>`;
}

function Download({ topic, text = "", close }) {
  const [state, setState] = useState({ kind: "asking", count: 0 });
  const aborter = useRef(new AbortController());
  useEffect(() => () => aborter.current.abort(), []);
  async function begin() {
    setState({ kind: "busy", count: 0 });
    try {
      const found = await collected({ topic, start: "earliest", contains: text }, (some) => setState({ kind: "busy", count: some }), aborter.current.signal);
      save(found.lines, fileName(topic));
      setState({ kind: "done", ...found });
    } catch (error) {
      if (!aborter.current.signal.aborted) setState({ kind: "fault", count: 0, why: error.message });
    }
  }
  const { kind, count: some } = state;
  return html`<h2 id="dialog-title">Download the records of <bdi dir="ltr">${visible(topic)}</bdi></h2>
    <div class="explain"><p>${text ? html`Records whose payload has <b>${visible(text)}</b>` : "All records that are kept"}, the oldest first, as JSON lines: time, offset, QoS, payload (base64 where it is no text), properties.
        At most ${count(RECORDS_MAX)} records or ${bytes(BYTES_MAX)}; more by REST, <code>rumqd log read</code> or Spark.</p>
      ${kind !== "asking" && html`<p role="status">${kind === "busy" ? `${plural(some, "record")} so far …` : kind === "done"
        ? html`<b>${plural(some, "record")}</b> in ${fileName(topic)}.${state.isCut ? " There are more: the file ends at the bound." : ""}${state.lost ? ` ${plural(state.lost, "record")} could not be read.` : ""}` : html`<span class="bad">${state.why}</span>`}</p>`}</div>
    <div class="buttons"><button type="button" onClick=${close}>${kind === "done" ? "Close" : "Cancel"}</button>
      ${kind !== "done" && html`<button type="button" class="main" autofocus disabled=${kind === "busy"} onClick=${begin}>Download</button>`}</div>`;
}
