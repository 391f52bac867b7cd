// What arrived at the console, the newest first: pause, clear, filter; a row shows its payload and properties.
import { html, useState } from "../parts/dom.js";
import { bytes, count, time, timeOfDay } from "../parts/format.js";
import { useKeys } from "../parts/keys.js";
import { filtered, lineOf } from "../parts/mqtt_session.js";
import { Name } from "../parts/name.js";
import { PayloadView } from "../parts/payload_view.js";
import { offerReplay } from "../parts/replay_dialog.js";
import { link } from "../parts/router.js";
import { useStore } from "../parts/store.js";
import { Search } from "../parts/table.js";
import { UserProperties } from "../parts/user_properties.js";

const SHOWN_MAX = 200;

export function Messages({ session }) {
  const latest = useStore(session.messages);
  const counts = useStore(session.counts);
  const [held, setHeld] = useState(null); // what was there when it was paused
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(null);
  const messages = held ?? latest;
  const rows = filtered(messages, text).slice(-SHOWN_MAX).reverse();
  const pause = () => setHeld(held ? null : session.messages.get());
  const clear = () => { session.clear(); setHeld(held && []); setChosen(null); };
  useKeys([["p", pause, "pause the messages"]], [held]);
  const shown = chosen && messages.find((each) => each.id === chosen.id) ? chosen : null;
  const isReplay = rows.some((each) => each.recordedAt !== null);
  return html`<section class="panel messages ${isReplay ? "replayed" : ""}"><header><h2>Messages</h2>
      <span class="dim">${count(counts.received)} received${counts.dropped ? `, the last ${count(latest.length)} are kept` : ""}${held ? html`, <span class="warn">paused</span>` : ""}</span><span class="spring"></span>
      <${Search} value=${text} onInput=${setText} placeholder="Topic or payload"/>
      <button type="button" id="pause" aria-pressed=${Boolean(held)} onClick=${pause}>${held ? "Continue" : "Pause"}</button>
      <button type="button" id="clear" onClick=${clear}>Clear</button></header>
    <div class="list"><table aria-label="Messages"><thead><tr><th class="time arrived" title="when it came here, by the clock of this computer">Arrived</th>
        ${isReplay && html`<th class="recorded" title="when the broker received the record, by the broker's clock; live messages do not tell it">Recorded</th>`}<th class="topic">Topic</th><th class="wide qos">QoS</th><th>Payload</th></tr></thead>
      <tbody>${rows.map((row) => html`<${MessageRow} key=${row.id} row=${row} isReplay=${isReplay} isChosen=${shown && shown.id === row.id} choose=${() => setChosen(shown && shown.id === row.id ? null : row)}/>`)}</tbody></table>
      ${!rows.length && html`<p class="empty">${text && messages.length ? "No message has this text." : "Subscribe, and messages appear here."}</p>`}</div>
    ${shown ? html`<${Message} message=${shown}/>` : html`<div></div>`}</section>`;
}

function MessageRow({ row, isReplay, isChosen, choose }) {
  const keyed = (event) => {
    const next = { ArrowDown: "nextElementSibling", j: "nextElementSibling", ArrowUp: "previousElementSibling", k: "previousElementSibling" }[event.key];
    if (event.key === "Enter" || event.key === " ") choose();
    else if (next) event.currentTarget[next]?.focus();
    else return;
    event.preventDefault();
  };
  return html`<tr class=${isChosen ? "chosen" : ""} tabindex="0" aria-selected=${Boolean(isChosen)} onClick=${choose} onKeyDown=${keyed}>
    <td class="arrived">${timeOfDay(row.at * 1000)}</td>${isReplay && html`<td class="recorded">${row.recordedAt === null ? html`<span class="dim">live</span>` : timeOfDay(row.recordedAt)}</td>`}<td class="topic"><${Name} text=${row.topic}/></td>
    <td class="wide">${row.qos}${row.retain ? html` <span class="tag">retain</span>` : ""}</td>
    <td class="grow"><span class="value">${lineOf(row)}</span></td></tr>`;
}

function Message({ message }) {
  const { topic, payload, properties } = message;
  const user = Object.entries(properties.userProperties ?? {}).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  const offset = user.findLast(([name]) => name === "rumq-offset")?.[1];
  const correlation = properties.correlationData;
  const facts = [
    ["Arrived here", `${time(message.at * 1000)}, by this computer's clock`],
    ["Recorded", message.recordedAt === null ? undefined : `${time(message.recordedAt)}, when the broker received it, by its clock`],
    ["Response topic", properties.responseTopic], ["Correlation data", correlation && new TextDecoder().decode(correlation)],
    ["Expires in", properties.messageExpiryInterval !== undefined ? `${properties.messageExpiryInterval} s` : undefined],
  ].filter(([, value]) => value !== undefined);
  return html`<div class="message" aria-label="The message"><div class="payload-head"><b><${Name} text=${topic} href=${link("/topic", { topic })}/></b>
      <span class="dim">QoS ${message.qos}${message.retain ? ", retain" : ""}${message.dup ? ", sent again" : ""}, ${bytes(payload.length)}</span><span class="spring"></span>
      ${offset !== undefined && html`<button type="button" class="small" onClick=${() => offerReplay(topic, offset)}>Replay from here</button>`}</div>
    <${PayloadView} key=${message.id} payload=${payload} contentType=${properties.contentType ?? ""}/>
    <dl class="facts properties">${facts.map(([name, value]) => html`<dt>${name}</dt><dd><${Name} text=${value}/></dd>`)}</dl>
    <${UserProperties} list=${user}/></div>`;
}
