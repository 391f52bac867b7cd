// The MQTT console: a client of the page itself. It publishes, subscribes, replays, and shows what arrives.
import { html, useEffect, useState } from "../parts/dom.js";
import { timeOfDay } from "../parts/format.js";
import { visibleLine } from "../parts/name.js";
import { connectPage, pageClient } from "../parts/page_client.js";
import { may } from "../parts/session.js";
import { useStore } from "../parts/store.js";
import { Heading } from "../parts/view_place.js";
import { Messages } from "./console_messages.js";
import { PublishForm } from "./console_publish.js";
import { SubscribeForm } from "./console_subscribe.js";

export const title = "MQTT console";

// filter, from: subscribed at once, as "replay from here" does; topic: to publish to
export function view({ filter, from, topic }) {
  const [session, setSession] = useState(null);
  const [fault, setFault] = useState(null);
  useEffect(() => {
    pageClient().then((found) => {
      if (found.state.get().kind === "off") connectPage(found);
      setSession(found);
    }, (error) => setFault(error.message));
  }, []);
  return html`<${Heading} title="MQTT console" line="A client of its own, over WebSocket. It stays connected while you look at other views.">
      ${session && html`<${Connection} session=${session}/>`}
    <//>
    ${fault && html`<p class="fault" role="alert">The MQTT client could not be loaded: ${fault}</p>`}
    ${session && html`<${Losses} session=${session}/>`}
    ${session && html`<div class="console">
      <div class="side">
        ${may("read") && html`<${SubscribeForm} session=${session} filter=${filter} from=${from}/>`}
        ${may("publish") && html`<${PublishForm} session=${session} topic=${topic}/>`}
      </div>
      <${Messages} session=${session}/></div>`}`;
}

const SAID = { off: ["", "not connected"], connecting: ["warn", "connecting …"], connected: ["good", "connected"], lost: ["bad", "lost"] };

function Connection({ session }) {
  const { kind, why, retry } = useStore(session.state);
  const [version, setVersion] = useState(session.version ?? 5);
  const [dot, text] = SAID[kind];
  const more = kind === "lost" ? `: ${why}; it is tried again in ${Math.round(retry / 1000)} s` : why && `: ${why}`;
  return html`<span class="health" id="connection" title=${why}><span class="dot ${dot}"></span><span>${text}${more && html`<span class="dim">${more}</span>`}</span></span>
    <select aria-label="Version of MQTT" value=${String(version)} disabled=${kind !== "off"} onChange=${(event) => setVersion(Number(event.target.value))}>
      <option value="5">MQTT 5</option><option value="4">MQTT 3.1.1</option></select>
    ${kind === "lost" && html`<button type="button" onClick=${() => session.retry()}>Try now</button>`}
    ${kind === "off" ? html`<button type="button" class="main" onClick=${() => connectPage(session, version)}>Connect</button>`
    : html`<button type="button" onClick=${() => session.disconnect()}>Disconnect</button>`}`;
}

// What a lost connection has cost: the console is a client without a session that stays.
function Losses({ session }) {
  const losses = useStore(session.losses);
  if (!losses.length) return null;
  const { at, why, isBack } = losses.at(-1);
  return html`<p class="notice" role="status" id="losses"><span>The connection was lost at ${timeOfDay(at * 1000)}: ${visibleLine(why, 400)}. ${isBack ? "It is there again." : ""}
    ${" "}Messages that were published meanwhile are not here${isBack ? ": a replay of the time has them" : ""}; replays ended and are not begun again by themselves.${losses.length > 1 ? ` It was lost ${losses.length} times.` : ""}</span>
    ${" "}<button type="button" class="small" onClick=${() => session.losses.set([])}>Close</button></p>`;
}
