// One session in detail, with what an operator can do about it.
import { get, unlessMissing } from "../parts/api.js";
import { reasonOf } from "../parts/consumer.js";
import { html, usePoll } from "../parts/dom.js";
import { byteRate, bytes, count, duration, NONE, rate } from "../parts/format.js";
import { Name, visible } from "../parts/name.js";
import { Facts, Figures, Panel, Tag } from "../parts/panel.js";
import { link } from "../parts/router.js";
import { Fault, Heading } from "../parts/view_place.js";
import { ClientActions } from "./client_actions.js";
import { InFlight, Limits, Losses, Subscriptions } from "./client_lists.js";
import { PacketTrace } from "./packet_trace.js";

export const title = ({ id = "" }) => visible(id);
const SECONDS = 3;

export function view({ id = "" }) {
  const { data, error, reload } = usePoll((signal) => unlessMissing(get("client", { client: id }, signal), { found: false }), SECONDS, [id], { keep: false });
  const row = data && data.client;
  const heading = html`<${Name} text=${id} none="(empty)"/>`;
  if (data && !data.found) {
    return html`<${Heading} title=${heading} line=${html`<a href="#/clients">Clients</a>`}/>
      <div class="panel"><p class="empty">There is no session with this client id: it has ended, or never was.</p></div>`;
  }
  if (!row) return html`<${Heading} title=${heading} line=${html`<a href="#/clients">Clients</a>`}/><${Fault} error=${error}/>`;
  const reason = reasonOf(row);
  return html`<${Heading} title=${heading} line=${html`<a href="#/clients">Clients</a>`}><${ClientActions} client=${id} row=${row} after=${reload}/></${Heading}>
    <${Fault} error=${error}/>
    <p class="state ${reason.kind}"><${Tag} kind=${reason.kind}>${reason.tag}</${Tag}> <span>${reason.line}</span></p>
    <${Figures} list=${[
      ["Behind", count(row.behind_records), row.behind_records ? `oldest ${duration(row.behind_seconds)}` : "records", row.behind_records && reason.kind],
      ["In flight", count(row.in_flight), row.in_flight_max ? `of ${count(row.in_flight_max)}` : "messages"],
      ["Delivered", rate(row.delivered_per_second), `${count(row.delivered)} in all`],
      ["Published", rate(row.published_per_second), `${count(row.published)} in all`],
      ["Sent to it", byteRate(row.bytes_out_per_second), `${bytes(row.bytes_out)} so far`],
      ["Read from it", byteRate(row.bytes_in_per_second), `${bytes(row.bytes_in)} so far`],
      ["Not delivered", count(row.undelivered), "messages", row.undelivered ? "warn" : ""],
    ]}/>
    <${Subscriptions} client=${id} detail=${data} after=${reload}/>
    <${PacketTrace} client=${id}/>
    <div class="columns"><${Connection} row=${row} detail=${data}/><div><${Limits} detail=${data}/><${InFlight} detail=${data}/></div></div>
    <${Losses} detail=${data}/>`;
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
    ["Session", ends],
  ]}/></${Panel}>`;
}
