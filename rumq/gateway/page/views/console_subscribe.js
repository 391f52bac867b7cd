// Subscriptions of the console: live ones and replays by time or offset.
import { html, useEffect, useRef, useState } from "../parts/dom.js";
import { Icon } from "../parts/icons.js";
import { Name } from "../parts/name.js";
import { useStore } from "../parts/store.js";

// [value, text]; "time" and "offset" have a field of their own
const STARTS = [
  ["", "Live messages only"], ["earliest", "Replay everything that is kept"], ["-1m", "Replay the last minute"], ["-1h", "Replay the last hour"], ["-1d", "Replay the last day"],
  ["time", "Replay from a time"], ["offset", "Replay from an offset of one topic"], ["other", "Replay from …"],
];

export function SubscribeForm({ session, filter: given, from: givenFrom }) {
  const state = useStore(session.state);
  const subscriptions = useStore(session.subscriptions);
  const [start, setStart] = useState("");
  const [from, setFrom] = useState("");
  const [level, setLevel] = useState("0");
  const [fault, setFault] = useState("");
  const form = useRef(null);
  const asked = useRef("");
  const isOn = state.kind === "connected";

  // "Replay from here" comes with a filter: it is subscribed once, when the connection is there.
  useEffect(() => {
    const key = `${given}\n${givenFrom}`;
    if (!given || !isOn || asked.current === key) return;
    asked.current = key;
    if (session.subscriptions.get().some((each) => each.filter === given && each.from === (givenFrom ?? "") && each.state !== "ended")) return;
    session.clear();
    setFault(session.subscribe({ filter: given, from: givenFrom ?? "", qos: 0 }));
  }, [given, givenFrom, isOn]);

  function submit(event) {
    event.preventDefault();
    const { filter, qos } = event.target.elements;
    const place = start === "time" ? new Date(from).toISOString() : ["offset", "other"].includes(start) ? from.trim() : start;
    setFault(session.subscribe({ filter: filter.value, from: place, qos: Number(qos.value) }));
    filter.select();
  }
  const choose = (value) => { setStart(value); setFrom(""); };
  return html`<section class="panel"><header><h2>Subscribe</h2></header>
    <form ref=${form} id="subscribe" onSubmit=${submit}>
      <label class="field"><span>Topic filter</span><input name="filter" required placeholder="plant/+/state" defaultValue=${given ?? ""} autocomplete="off" spellcheck=${false}/></label>
      <div class="row"><label class="field"><span>From</span><select name="start" value=${start} onChange=${(event) => choose(event.target.value)}>${STARTS.map(([value, text]) => html`<option key=${value} value=${value}>${text}</option>`)}</select></label></div>
      ${start === "time" && html`<label class="field"><span>Time</span><input type="datetime-local" name="from" step="1" required value=${from} onInput=${(event) => setFrom(event.target.value)}/></label>`}
      ${start === "offset" && html`<label class="field"><span>Offset</span><input type="number" name="from" min="0" required value=${from} onInput=${(event) => setFrom(event.target.value)}/></label>`}
      ${start === "other" && html`<label class="field"><span>Start</span><input name="from" required placeholder="retained@-1h" value=${from} onInput=${(event) => setFrom(event.target.value)}/>
        <small>-90s, -7d, 2026-11-20T06:00:00Z, or retained@ before one of them: first the retained messages of that moment</small></label>`}
      <div class="row"><label class="field"><span>QoS</span><select name="qos" value=${level} onChange=${(event) => setLevel(event.target.value)}>${["0", "1", "2"].map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>
        <button type="submit" class="main" disabled=${!isOn}>Subscribe</button></div>
      ${fault && html`<p class="fault" role="alert">${fault}</p>`}
    </form>
    ${subscriptions.length > 0 && html`<ul class="subscriptions">${subscriptions.map((each) => html`<${Subscription} key=${each.id} session=${session} of=${each}/>`)}</ul>`}
  </section>`;
}

const KIND = { asked: "", granted: "good", refused: "bad", ended: "warn" };

function Subscription({ session, of }) {
  return html`<li><span class="dot ${KIND[of.state]}" title=${of.state}></span>
    <span class="what"><${Name} text=${of.filter}/><small>${of.from ? html`from <${Name} text=${of.from}/>, ` : "live, "}QoS ${of.qos}${of.state === "granted" ? "" : `, ${of.state}`}${of.why && `: ${of.why}`}</small></span>
    <button type="button" class="plain tool" title="Unsubscribe" aria-label="Unsubscribe ${of.filter}" onClick=${() => session.unsubscribe(of)}><${Icon} name="close"/></button></li>`;
}
