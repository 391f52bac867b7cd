// One session in detail, with what an operator can do about it.
import { get, unlessMissing } from "../parts/api.js";
import { reasonOf } from "../parts/consumer.js";
import { html, usePoll } from "../parts/dom.js";
import { byteRate, bytes, count, duration, NONE, plural, rate } from "../parts/format.js";
import { Name, visible } from "../parts/name.js";
import { Facts, Figures, Panel, Tag } from "../parts/panel.js";
import { link } from "../parts/router.js";
import { Fault, Heading, Loading } from "../parts/view_place.js";
import { ClientActions, DisconnectButton, ResetButton } from "./client_actions.js";
import { InFlight, Limits, Losses, Subscriptions, WaitsForIt } from "./client_lists.js";
import { PacketTrace } from "./packet_trace.js";

export const title = ({ id = "" }) => visible(id);
const SECONDS = 3;
const COUNT_SECONDS = 15; // the log is read for it

export function view({ id = "" }) {
  const { data, error, reload } = usePoll((signal) => unlessMissing(get("client", { client: id }, signal), { found: false }), SECONDS, [id], { keep: false });
  const row = data && data.client;
  const isBehind = Boolean(row && row.behind_records);
  const { data: counted } = usePoll((signal) => (isBehind ? get("waiting", { client: id }, signal) : Promise.resolve(null)), COUNT_SECONDS, [id, isBehind], { keep: false });
  const heading = html`<${Name} text=${id} none="(empty)"/>`;
  if (data && !data.found) {
    return html`<${Heading} title=${heading} line=${html`<a href="#/clients">Clients</a>`}/>
      <div class="panel"><p class="empty">There is no session with this client id: it has ended, or never was.</p></div>`;
  }
  if (!row) return html`<${Heading} title=${heading} line=${html`<a href="#/clients">Clients</a>`}/><${Fault} error=${error}/>${!error && html`<${Loading}/>`}`;
  const reason = reasonOf(row, counted && counted.found ? counted : null);
  return html`<${Heading} title=${heading} line=${html`<a href="#/clients">Clients</a>`}><${ClientActions} client=${id} row=${row} after=${reload}/></${Heading}>
    <${Fault} error=${error}/>
    <p class="state ${reason.kind}"><${Tag} kind=${reason.kind}>${reason.tag}</${Tag}> <span>${reason.line}</span>${reason.remedy && html` <span class="dim remedy">${reason.remedy}</span>`} <${Remedy} client=${id} row=${row} reason=${reason} after=${reload}/></p>
    <${Figures} list=${[
      ["Waits for it", counted && isBehind ? `${counted.messages < counted.at_most ? "≥ " : ""}${count(counted.messages)}` : isBehind ? `≤ ${count(row.behind_records)}` : "0",
        isBehind ? `of ${plural(row.behind_records, "record")} behind; oldest ${duration(row.behind_seconds)}` : "messages", isBehind && reason.kind],
      ["In flight", count(row.in_flight), row.in_flight_max ? `of ${count(row.in_flight_max)}` : "messages"],
      ["Delivered", rate(row.delivered_per_second), `${count(row.delivered)} in all`],
      ["Published", rate(row.published_per_second), `${count(row.published)} in all`],
      ["Sent to it", byteRate(row.bytes_out_per_second), `${bytes(row.bytes_out)} so far`],
      ["Read from it", byteRate(row.bytes_in_per_second), `${bytes(row.bytes_in)} so far`],
      ["Not delivered", count(row.undelivered), "messages", row.undelivered ? "warn" : ""],
    ]}/>
    <${Subscriptions} client=${id} detail=${data} after=${reload}/>
    ${isBehind && html`<${WaitsForIt} counted=${counted}/>`}
    <${PacketTrace} client=${id}/>
    <div class="columns"><${Connection} row=${row} detail=${data}/><div><${Limits} detail=${data}/><${InFlight} detail=${data}/></div></div>
    <${Losses} detail=${data}/>`;
}

// What helps at once, as a button beside the reason.
function Remedy({ client, row, reason, after }) {
  if (reason.tag === "not reading" && row.behind_records) return html`<${DisconnectButton} client=${client} after=${after} kind="small"/>`;
  if (["in flight full", "catching up", "away"].includes(reason.tag) && row.behind_records) return html`<${ResetButton} client=${client} behind=${row.behind_records} after=${after} kind="small" label="Skip …"/>`;
  return null;
}

function Will({ will }) {
  return html`<${Name} text=${will.topic} href=${link("/topic", { topic: will.topic })}/> <span class="dim">${bytes(will.bytes)}, QoS ${will.qos}${will.retain ? ", retained" : ""}${will.delay_seconds ? `, ${duration(will.delay_seconds)} after its connection has ended` : ""}</span>`;
}

function Connection({ row, detail }) {
  const ends = row.connected ? "stays while it is connected" : detail.expires_seconds === null ? "never ends" : `ends in ${duration(detail.expires_seconds)}`;
  return html`<${Panel} title="Connection"><${Facts} list=${[
    ["User", html`<${Name} text=${row.user} none="anonymous" href=${row.user ? link("/clients", { user: row.user }) : null}/>`],
    ["Address", row.address ?? NONE],
    ["Connected", row.connected ? `for ${duration(row.since_seconds)}` : "no"],
    ["Protocol", `MQTT ${row.protocol}`],
    ["Keep alive", row.keep_alive_seconds === null ? NONE : row.keep_alive_seconds ? duration(row.keep_alive_seconds) : "off"],
    ["Listener", row.listener === null ? NONE : html`<a href="#/shards">${row.listener}</a>`],
    row.mount_point && ["Mount point", html`<${Name} text=${row.mount_point}/>`],
    ["Encrypted", detail.security === null || detail.security === undefined ? html`<span class="dim" title="It is away, or the gateway or another process has this layer">not known here</span>` : detail.security || "no (plain TCP)"],
    detail.certificate && ["Certificate", html`<${Name} text=${detail.certificate}/>`],
    ["Session", ends],
    ["Session expiry", detail.expiry_interval_seconds === null ? "never" : detail.expiry_interval_seconds ? `${duration(detail.expiry_interval_seconds)} after its connection has ended` : "with its connection"],
    ["Will", detail.will && detail.will.length ? html`<${Will} will=${detail.will[0]}/>` : html`<span class="dim">none</span>`],
  ]}/></${Panel}>`;
}
