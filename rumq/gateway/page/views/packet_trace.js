// The packets of a client that is traced, as they come: type, topic, size, never the payload.
import { act, get } from "../parts/api.js";
import { toast } from "../parts/dialog.js";
import { html, usePoll } from "../parts/dom.js";
import { useEvents } from "../parts/event_feed.js";
import { bytes, count, duration, timeOfDay } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { Panel } from "../parts/panel.js";
import { may, mayFollow } from "../parts/session.js";

const SHOWN_MAX = 100;

// Nothing, unless the client is traced, and for whom traces are not answered.
export function PacketTrace({ client }) {
  return mayFollow() ? html`<${Trace} client=${client}/>` : null;
}

function Trace({ client }) {
  const { data, reload } = usePoll((signal) => get("traces", {}, signal), 3, [client]);
  const trace = data && data.traces.find((each) => each.kind === "client" && each.name === client);
  if (!trace) return null;
  const end = () => act("untrace", { kind: "client", name: client }).then(reload, (fault) => toast(fault.message, "bad"));
  const left = trace.left_out ? `, ${count(trace.left_out)} beyond 100 a second left out` : "";
  return html`<${Panel} flush title="Trace" note=${`${duration(trace.seconds)} left, ${count(trace.reported)} packets${left}`}
      right=${may("administer") && html`<button type="button" class="small" onClick=${end}>End</button>`}>
    <${Packets} client=${client}/></${Panel}>`;
}

function Packets({ client }) {
  const { events, error } = useEvents({ level: "info", event: "trace.packet", wanted: (each) => each.fields.client_id === client });
  if (error) return html`<p class="empty">${error.message}</p>`;
  const rows = events ? events.slice(0, SHOWN_MAX) : [];
  if (!rows.length) return html`<p class="empty">Waiting for a packet …</p>`;
  return html`<div class="short"><div class="scroll"><table aria-label="Packets">
    <thead><tr><th>Time</th><th></th><th>Packet</th><th class="grow">Topic or filters</th><th>Details</th><th class="number">Size</th></tr></thead>
    <tbody>${rows.map(({ cursor, time_us: at, fields }) => html`<tr key=${cursor}>
      <td class="dim">${timeOfDay(at)}</td>
      <td title=${fields.direction === "in" ? "from the client" : "to the client"}>${fields.direction === "in" ? "→" : "←"}</td>
      <td><b>${fields.packet}</b></td>
      <td class="grow"><${Name} text=${fields.topic ?? (fields.filters ? [].concat(fields.filters).join(", ") : "")} none=""/></td>
      <td class="dim">${details(fields)}</td>
      <td class="number">${bytes(fields.bytes)}</td></tr>`)}</tbody></table></div></div>`;
}

function details({ qos, retain, dup, packet_id: id, reason }) {
  return [
    qos !== undefined && `QoS ${qos}`, retain && "retain", dup && "dup", id !== undefined && id !== null && `id ${id}`,
    reason !== undefined && reason !== null && `reason 0x${Number(reason).toString(16).padStart(2, "0")}`,
  ].filter(Boolean).join(", ");
}
