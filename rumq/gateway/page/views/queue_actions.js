// What is done with a queue: push, purge, redrive, new channels, deletion. Each says first what will happen.
import { ActionButton } from "../parts/action.js";
import { part, post, remove } from "../parts/api.js";
import { html } from "../parts/dom.js";
import { count, plural } from "../parts/format.js";
import { Name, visible } from "../parts/name.js";
import { go } from "../parts/router.js";

export function Push({ label, after }) {
  return html`<${ActionButton} label="Push …" role="publish" confirm="Push" title=${html`Push to <${Name} text=${label}/>`} after=${after}
    fields=${[
      { name: "payload", label: "Payload, as text", value: "", first: true, required: false },
      { name: "topic", label: "Topic, if it has one", value: "", required: false },
      { name: "key", label: "Key: messages of one are consumed in order, on channels that ask for it", value: "", required: false },
      { name: "delay", label: "Not before so many seconds", type: "number", min: 0, step: "any", value: 0 },
    ]}
    body=${({ payload, topic, key, delay }) => ({ payload, topic: topic || null, key: key || null, delay_seconds: Number(delay) })}
    perform=${(body) => post(`queues/${part(label)}/messages`, body)}
    explain="It is pushed as the token's user, and each channel of the queue sees it."
    done=${(answer) => (answer.ids[0] ? `Pushed as ${answer.ids[0]}.` : "Pushed.")}/>`;
}

// place: of REST; what: a vnode that names it
export function Purge({ place, what, depth, after, small = false }) {
  return html`<${ActionButton} label="Purge …" kind=${small ? "small" : ""} danger confirm="Purge" title=${html`Drop what waits in ${what}?`} after=${after}
    perform=${() => post(`${place}/purge`, {})}
    explain=${html`<p>Some <b>${count(depth)} messages</b> that are not acknowledged are dropped there: no consumer gets them any more. What consumers hold just now stays theirs. It cannot be undone.</p>`}
    done=${({ done }) => (done ? `${plural(done, "message")} dropped.` : ["There was none to drop.", "warn"])}/>`;
}

export function Redrive({ place, after }) {
  return html`<${ActionButton} label="Redrive …" kind="small" confirm="Redrive" title="Push the dead letters back?" after=${after}
    perform=${() => post(`${place}/redrive`, {})}
    explain="They are pushed to the queue and topic that they came from, behind what waits there, and are tried from the first time on. 10,000 at once."
    done=${({ done }) => (done ? `${plural(done, "message")} pushed back.` : ["There was none.", "warn"])}/>`;
}

export function NewChannel({ label, after }) {
  return html`<${ActionButton} label="New channel …" kind="small" role="consume" confirm="Create" title=${html`A new channel of <${Name} text=${label}/>`} after=${after}
    fields=${[
      { name: "id", label: "Id; empty: a new one is made", value: "", first: true, required: false },
      { name: "topic", label: "Topic; empty: all of the queue", value: "", required: false },
      { name: "visible", label: "Seconds after which a message that is not acknowledged goes to another", type: "number", min: 0.1, max: 86400, step: "any", value: 30 },
      { name: "ordered", label: "In order: of messages with one key, one at a time", type: "check", value: false },
    ]}
    body=${({ id, topic, visible: seconds, ordered }) => ({ id: id || null, topic: topic || null, visible_seconds: Number(seconds), is_ordered: ordered })}
    perform=${(body) => post(`queues/${part(label)}/channels`, body)}
    explain="It sees what is pushed from now on, and keeps its place over restarts, whether anybody consumes or not."
    done=${(answer) => `Channel ${visible(answer.id)} is there.`}/>`;
}

export function DeleteChannel({ row, after }) {
  return html`<${ActionButton} label="Delete …" kind="small" role="consume" danger confirm="Delete" title=${html`Delete channel <${Name} text=${row.id}/>?`} after=${after}
    perform=${() => remove(`channels/${part(row.id)}`)}
    explain="Its place is lost, and its consumers are told that it is gone. Messages stay in the queue, for its other channels."
    done=${() => "The channel is deleted."}/>`;
}

export function DeleteQueue({ queue }) {
  return html`<${ActionButton} label="Delete …" danger confirm="Delete" title=${html`Delete queue <${Name} text=${queue.label}/>?`} after=${() => go("/queues")}
    perform=${() => remove(`queues/${part(queue.label)}`)}
    explain=${html`<p><b>All of its messages</b>, some ${count(queue.depth)} that wait among them, and <b>its ${plural(queue.channels.length, "channel")}</b> are gone. It cannot be undone.</p>`}
    done=${() => "The queue is deleted."}/>`;
}
