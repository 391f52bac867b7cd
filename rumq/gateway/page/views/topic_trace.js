// A trace of one topic: each message is an event for a time, shown as it happens. Without payloads.
import { act, get } from "../parts/api.js";
import { ActionButton } from "../parts/action.js";
import { toast } from "../parts/dialog.js";
import { html, usePoll } from "../parts/dom.js";
import { useEvents } from "../parts/event_feed.js";
import { bytes, count, duration, timeOfDay } from "../parts/format.js";
import { may, mayFollow } from "../parts/session.js";

const SHOWN_MAX = 50;
const TIMES = [["60", "1 minute"], ["300", "5 minutes"], ["1800", "30 minutes"], ["3600", "1 hour"]];

// Nothing for whom traces are not answered.
export function TopicTrace({ topic }) {
  return mayFollow() ? html`<${Trace} topic=${topic}/>` : null;
}

function Trace({ topic }) {
  const { data, reload } = usePoll((signal) => get("traces", {}, signal), 5, [topic]);
  const trace = data && data.traces.find((each) => each.kind === "topic" && each.name === topic);
  const stop = () => act("untrace", { kind: "topic", name: topic }).then(reload, (fault) => toast(fault.message, "bad"));
  return html`<section class="panel"><header><h2>Trace</h2>
      <span class="dim">${trace ? `${duration(trace.seconds)} left, ${count(trace.reported)} events${trace.left_out ? `, ${count(trace.left_out)} beyond the rate left out` : ""}` : "each message as an event, for a time"}</span><span class="spring"></span>
      ${trace ? may("administer") && html`<button type="button" onClick=${stop}>End</button>` : html`<${ActionButton} label="Trace …" confirm="Trace" name="trace" title="Trace this topic" after=${reload}
        fields=${[{ name: "seconds", label: "For", type: "choice", value: "60", options: TIMES }]} body=${({ seconds }) => ({ kind: "topic", name: topic, seconds: Number(seconds) })}
        explain="Every message of this topic is reported as an event trace.message, here, in the broker's log and to whoever polls events: its place, size and QoS, never its payload. At most 100 events a second."
        done=${() => "The topic is traced."}/>`}</header>
    ${trace && html`<${TracedMessages} topic=${topic}/>`}</section>`;
}

function TracedMessages({ topic }) {
  const { events } = useEvents({ event: "trace.message", wanted: (each) => each.fields.topic === topic });
  const rows = events && events.slice(0, SHOWN_MAX);
  return html`<div class="scroll"><table aria-label="Traced messages"><thead><tr><th>Time</th><th class="number">Offset</th><th class="number">lsn</th><th>QoS</th><th class="number">Payload</th></tr></thead>
      <tbody>${rows && rows.map(({ cursor, time_us, fields }) => html`<tr key=${cursor}><td>${timeOfDay(fields.time_us ?? time_us)}</td><td class="number">${fields.offset}</td>
        <td class="number">${fields.lsn}</td><td>${fields.qos}${fields.retain ? " retain" : ""}</td><td class="number">${bytes(fields.payload_bytes)}</td></tr>`)}</tbody></table></div>
    ${rows && !rows.length && html`<p class="empty">Waiting for a message …</p>`}`;
}
