// One queue: its figures and bounds, its channels, the messages in it, its dead letters; push, purge, redrive, delete.
import { get, part, unlessForbidden, unlessMissing } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { bytes, count, duration, plural, time } from "../parts/format.js";
import { Name, visibleLine } from "../parts/name.js";
import { Figures, Panel, Tag } from "../parts/panel.js";
import { link } from "../parts/router.js";
import { Table } from "../parts/table.js";
import { Fault, Heading, Loading } from "../parts/view_place.js";
import { DeleteChannel, DeleteQueue, NewChannel, Purge, Push, Redrive } from "./queue_actions.js";
import { QueueMessages } from "./queue_messages.js";
import { waited } from "./queues.js";

export const title = ({ label = "" }) => visibleLine(label);
const SECONDS = 3;

export function view({ label = "" }) {
  const place = `queues/${part(label)}`;
  const { data, error, reload } = usePoll(async (signal) => {
    const [queue, channels, waiting, dead] = await Promise.all([
      unlessMissing(get(place, {}, signal), null), unlessMissing(get("channels", { queue: label }, signal), { channels: [] }),
      unlessMissing(unlessForbidden(get(`${place}/messages`, {}, signal)), { messages: [] }),
      unlessMissing(unlessForbidden(get(`${place}/dead-letters`, {}, signal)), { messages: [] }),
    ]);
    return { queue, channels: channels.channels, waiting, dead };
  }, SECONDS, [label], { keep: false });
  const queue = data && data.queue;
  return html`<${Heading} title=${html`<${Name} text=${label}/>`} line=${html`one of the <a href=${link("/queues")}>queues</a>`}>
      ${queue && html`<${Push} label=${queue.label} after=${reload}/>
        <${Purge} place=${place} what=${html`queue <${Name} text=${queue.label}/>`} depth=${queue.depth} after=${reload}/>
        <${DeleteQueue} queue=${queue}/>`}
    </${Heading}>
    <${Fault} error=${error}/>
    ${!data && !error && html`<${Loading}/>`}
    ${data && !queue && html`<p class="empty">There is no such queue, or the rules do not let this token's user know of it.</p>`}
    ${queue && html`<${QueueFigures} queue=${queue}/>
      <${Channels} queue=${queue} rows=${data.channels} after=${reload}/>
      <${QueueMessages} title="Messages" note="the oldest that have not expired, whoever consumes them" answer=${data.waiting} empty="There is none."/>
      ${(queue.dead > 0 || (data.dead.messages ?? []).length > 0) && html`<${QueueMessages} title="Dead letters" note="messages that failed too often, the oldest first" answer=${data.dead}
        right=${html`<${Redrive} place=${place} after=${reload}/>`} empty="There is none any more."/>`}`}`;
}

function QueueFigures({ queue }) {
  const bound = queue.records_max ? `of at most ${count(queue.records_max)}` : "without a bound";
  const old = waited(queue);
  return html`<${Figures} list=${[
    ["Depth", count(queue.depth), queue.bytes_max ? `${bytes(queue.depth_bytes)} of at most ${bytes(queue.bytes_max)}` : bound, queue.records_max && queue.depth >= queue.records_max ? "bad" : ""],
    ["Oldest", duration(old), old === null ? (queue.depth ? "not known" : "nothing waits") : time(queue.oldest_us)],
    ["Consumers", count(queue.consumers), plural(queue.channels.length, "channel"), queue.depth && !queue.consumers ? "warn" : ""],
    ["Dead letters", count(queue.dead), "failed too often", queue.dead ? "warn" : ""],
    ["Time to live", duration(queue.ttl_seconds), queue.when_full === "refuse" ? "when full: refuses" : "when full: drops the oldest"],
    ["Pushed", count(queue.pushed), `${count(queue.refused)} refused, ${count(queue.dropped)} dropped, by this gateway`],
  ]}/>`;
}

function Channels({ queue, rows, after }) {
  const columns = [
    { key: "id", title: "Channel", grow: true, cell: (row) => html`<${Name} text=${row.id}/>` },
    { key: "topic", title: "Topic", cell: (row) => html`<${Name} text=${row.topic} none="all"/>` },
    { key: "depth", title: "Depth", help: "messages that are not acknowledged yet", number: true, cell: (row) => count(row.depth) },
    { key: "consumers", title: "Consumers", number: true, cell: (row) => count(row.consumers) },
    { key: "flight", title: "In flight", help: "given to consumers of this gateway", number: true, wide: true, cell: (row) => count(row.in_flight) },
    { key: "dead", title: "Dead", number: true, wide: true, cell: (row) => html`<span class=${row.dead ? "warn" : ""}>${count(row.dead)}</span>` },
    { key: "visible", title: "Visible after", help: "a message that is not acknowledged so long is given to another consumer", number: true, wide: true, cell: (row) => duration(row.visible_seconds) },
    { key: "order", title: "Order", wide: true, cell: (row) => html`<${Tag}>${row.is_ordered ? "by key" : "any"}</${Tag}>` },
    { key: "act", title: "", tight: true, cell: (row) => html`<span class="actions"><${Purge} small place=${`channels/${part(row.id)}`} what=${html`channel <${Name} text=${row.id}/>`} depth=${row.depth} after=${after}/>
      <${DeleteChannel} row=${row} after=${after}/></span>` },
  ];
  return html`<${Panel} flush title="Channels" note="each sees every message that is pushed after it was created" right=${html`<${NewChannel} label=${queue.label} after=${after}/>`}>
    <${Table} label="Channels" columns=${columns} rows=${rows} rowKey=${(row) => row.id} empty="It has no channel: messages wait until their time to live is over."/></${Panel}>`;
}
