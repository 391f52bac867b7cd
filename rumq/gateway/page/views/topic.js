// One topic: its rate, its last and its retained message, its records back to the first one that is kept, a trace of it.
import { get, unlessForbidden } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { ago, count, rate, time } from "../parts/format.js";
import { Name, visibleLine } from "../parts/name.js";
import { bytesOf } from "../parts/payload.js";
import { PayloadView } from "../parts/payload_view.js";
import { offerReplay } from "../parts/replay_dialog.js";
import { link } from "../parts/router.js";
import { UserProperties } from "../parts/user_properties.js";
import { Fault, Heading, Loading } from "../parts/view_place.js";
import { DeletionButton } from "./retained_actions.js";
import { TopicRecords } from "./topic_records.js";
import { DownloadButton, Found } from "./topic_search.js";
import { TopicTrace } from "./topic_trace.js";

export const title = ({ topic = "" }) => visibleLine(topic);
const SECONDS = 3;

export function view({ topic = "", end, at, find = "" }) {
  const { data, error, reload } = usePoll(async (signal) => {
    const [topics, value, retained] = await Promise.all([
      get("topics", { topic, limit: 1 }, signal), unlessForbidden(get("value", { topic }, signal)),
      unlessForbidden(get("retained", { topic, limit: 1 }, signal)),
    ]);
    return { row: topics.topics[0] ?? null, last: value.record ?? null, retained: retained.messages?.[0] ?? null, forbidden: value.forbidden };
  }, SECONDS, [topic], { keep: false });
  const row = data && data.row;
  const last = data && data.last;
  return html`<${Heading} title=${html`<${Name} text=${topic}/>`} line=${html`<${Levels} topic=${topic}/>`}>
      <button type="button" onClick=${() => offerReplay(topic, "earliest")}>Replay …</button>
      <a class="button" href=${link("/console", { topic })}>Publish …</a>
      ${row && !data.forbidden && html`<${DownloadButton} topic=${topic} text=${find}/>`}
      <${DeletionButton} topic=${topic} row=${row} last=${last} retained=${data && data.retained} after=${reload}/>
    <//>
    <${Fault} error=${error}/>
    ${!data && !error && html`<${Loading}/>`}
    ${data && !row && html`<p class="empty">Nothing has been published to this topic, or retention has removed all of it.</p>`}
    ${row && html`<dl class="figures">
      <div><dt>Rate</dt><dd>${rate(row.records_per_second)}</dd><small>of the last minute or two</small></div>
      <div><dt>Records</dt><dd>${count(row.records)}</dd><small>published so far</small></div>
      <div><dt>Last</dt><dd>${last ? ago(last.time_us) : "–"}</dd><small>${last ? time(last.time_us) : data.forbidden ? "not permitted" : "none is kept"}</small></div>
      <div><dt>Partition</dt><dd><a href=${link("/stream", { stream: row.stream })}>${row.stream} ${row.partition}</a></dd><small>stream and number</small></div></dl>`}
    ${data && data.forbidden && html`<p class="notice" role="status">${data.forbidden}</p>`}
    ${last && html`<div class="columns">
      <section class="panel"><header><h2>Last value</h2><span class="dim">offset ${last.offset}, QoS ${last.qos}, ${time(last.time_us)}</span></header>
        <div class="body"><${PayloadView} payload=${bytesOf(last)} contentType=${last.content_type ?? ""}/><${UserProperties} list=${last.user_properties}/></div></section>
      ${data.retained && html`<${Retained} message=${data.retained} isLast=${data.retained.lsn === last.lsn}/>`}
    </div>`}
    ${row && !data.forbidden && find && html`<${Found} topic=${topic} text=${find}/>`}
    ${row && !data.forbidden && !find && html`<${TopicRecords} topic=${topic} next=${last ? last.offset + 1 : 0} end=${end} at=${at}/>`}
    ${row && html`<${TopicTrace} topic=${topic}/>`}`;
}

function Levels({ topic }) {
  const levels = topic.split("/").slice(0, -1);
  if (!levels.length) return "a topic";
  return html`below ${levels.map((level, number) => html`<a href=${link("/topics", { topic: `${levels.slice(0, number + 1).join("/")}/#` })}><${Name} text=${level} none="(empty)"/></a>/`)}`;
}

function Retained({ message, isLast }) {
  return html`<section class="panel"><header><h2>Retained</h2><span class="dim">${isLast ? "the same record" : `of ${time(message.time_us)}`}, QoS ${message.qos}</span></header>
    <div class="body"><${PayloadView} payload=${bytesOf(message)} whole=${message.bytes} label="Retained payload"/></div></section>`;
}
