// Deleting retained messages: of one topic, or of all topics that a filter matches. Their records stay in the log.
import { ActionButton } from "../parts/action.js";
import { act } from "../parts/api.js";
import { openDialog } from "../parts/dialog.js";
import { html } from "../parts/dom.js";
import { count, plural } from "../parts/format.js";
import { visible } from "../parts/name.js";
import { link } from "../parts/router.js";
import { may } from "../parts/session.js";

// A request deletes some; the others follow.
async function clearAll({ topic }) {
  const sum = { done: 0, refused: 0, first_refused: [] };
  let after = null;
  do {
    const answer = await act("clear", { topic, after });
    sum.done += answer.done;
    sum.refused += answer.refused;
    sum.first_refused.push(...answer.first_refused);
    after = answer.next;
  } while (after !== null);
  return sum;
}

function said({ done, refused, first_refused: first }) {
  const text = `${plural(done, "retained message")} deleted.`;
  if (!refused) return done ? text : ["There was none to delete.", "warn"];
  return [`${text} ${count(refused)} could not be: ${first[0].topic.slice(0, 80)}: ${first[0].why}.`, "warn"];
}

// What deletes the records of a topic: the honest answer of a log, docs/decisions.
export function DeletionButton({ topic, row, last, retained, after }) {
  if (!may("administer") || !row) return null;
  return html`<button type="button" class="danger" onClick=${() => openDialog(Deletion, { topic, row, last, retained, after })}>Delete …</button>`;
}

function Deletion({ topic, row, last, retained, after, close }) {
  return html`<h2 id="dialog-title">Delete what of <bdi dir="ltr">${visible(topic)}</bdi>?</h2>
    <div class="explain">
      <p><b>Its retained message</b> ${retained ? "can be deleted alone: its records stay." : "does not exist."}</p>
      <p><b>Its records</b> cannot be deleted alone: a log removes whole segments of a partition, the oldest first, with the records of all of its topics. ${last
        ? html`They are in ${row.stream} ${row.partition}, the newest at lsn ${count(last.lsn)}: <b>a trim above it</b> removes them, and everything else that is older there.` : "None of them is kept any more."}</p>
      <p>Otherwise they go by retention, which a stream of its own with short retention, or an expiry interval of the publisher, makes short. Copies in the lake, in mirrors and in backups have their own.</p></div>
    <div class="buttons"><button type="button" autofocus onClick=${close}>Close</button>
      ${last && html`<a class="button" href=${link("/stream", { stream: row.stream, partition: row.partition })} onClick=${close}>Segments, to trim</a>`}
      ${retained && html`<${ClearButton} filter=${topic} label="Delete the retained message …" kind="" after=${after}/>`}</div>`;
}

// filter: a topic or a topic filter; many: how many match, as far as known
export function ClearButton({ filter, many = null, label = "Delete …", kind = "small", after }) {
  const isOne = many === null;
  return html`<${ActionButton} label=${label} kind=${kind} danger name="clear" perform=${clearAll} confirm="Delete" after=${after} body=${{ topic: filter }}
    title=${isOne ? html`Delete the retained message of <bdi dir="ltr">${visible(filter)}</bdi>?` : html`Delete all retained messages of <bdi dir="ltr">${visible(filter)}</bdi>?`}
    explain=${html`<p>${isOne ? "The topic has" : html`<b>${many} of these messages</b> are there now. Their topics have`} no retained message any more: new subscribers get nothing at once. Those who are subscribed get an empty message.</p>
      <p><b>Records stay</b>: a log removes whole segments, the oldest first, by retention or trim. The deletion is published as the token's user, as far as its rules let it read, publish and retain there. It cannot be undone.</p>`}
    done=${said}/>`;
}
