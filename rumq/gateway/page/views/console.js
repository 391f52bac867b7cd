// The MQTT console: a client of the page itself. It publishes, subscribes, replays, and shows what arrives.
import { html, useEffect, useState } from "../parts/dom.js";
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
    ${session && html`<div class="console">
      <div class="side">
        ${may("read") && html`<${SubscribeForm} session=${session} filter=${filter} from=${from}/>`}
        ${may("publish") && html`<${PublishForm} session=${session} topic=${topic}/>`}
      </div>
      <${Messages} session=${session}/></div>`}`;
}

const SAID = { off: ["", "not connected"], connecting: ["warn", "connecting …"], connected: ["good", "connected"], lost: ["bad", "lost"] };

function Connection({ session }) {
  const { kind, why } = useStore(session.state);
  const [version, setVersion] = useState(session.version ?? 5);
  const [dot, text] = SAID[kind];
  return html`<span class="health" id="connection" title=${why}><span class="dot ${dot}"></span><span>${text}${why && html`<span class="dim">: ${why}</span>`}</span></span>
    <select aria-label="Version of MQTT" value=${String(version)} disabled=${kind !== "off"} onChange=${(event) => setVersion(Number(event.target.value))}>
      <option value="5">MQTT 5</option><option value="4">MQTT 3.1.1</option></select>
    ${kind === "off" ? html`<button type="button" class="main" onClick=${() => connectPage(session, version)}>Connect</button>`
    : html`<button type="button" onClick=${() => session.disconnect()}>Disconnect</button>`}`;
}
