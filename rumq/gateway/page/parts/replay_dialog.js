// "Replay from here": the same place for the console of the page, for mosquitto_sub, rumqd sub and Spark.
import { get } from "./api.js";
import { openDialog } from "./dialog.js";
import { html, useEffect, useState } from "./dom.js";
import { CopyButton } from "./payload_view.js";
import { addressOf, quoted, spark } from "./replay_words.js";
import { go } from "./router.js";
import { visible, visibleLine } from "./visible.js";

// from: an offset of the topic, or another start of docs/reference/replay.md
export function offerReplay(topic, from) {
  openDialog(ReplayDialog, { topic, from: String(from), wide: true });
}

function ReplayDialog({ topic, from, close }) {
  const [broker, setBroker] = useState(addressOf(""));
  useEffect(() => {
    get("listeners").then(({ listeners }) => setBroker(addressOf(listeners[0]?.name ?? "")), () => {});
  }, []);
  const isOffset = /^\d+$/.test(from);
  const [host, port] = broker;
  const commands = [
    ["mosquitto_sub", `mosquitto_sub -h ${host} -p ${port} -v -t ${quoted(`$log/${from}/${topic}`)}`],
    ["rumqd", `rumqd sub ${quoted(topic)} --from ${quoted(from)} --host ${host} --port ${port}`],
    ["Spark", spark(topic, from)],
  ];
  const start = () => { close(); go("/console", { filter: topic, from }); };
  return html`<h2 id="dialog-title">Replay ${visibleLine(topic)}</h2>
    <div class="explain"><p>Every message of the topic from ${isOffset ? html`<b>offset ${from}</b>` : html`<b>${visibleLine(from)}</b>`} on, in order and each once, then live ones.
      No one else's place changes.</p></div>
    ${commands.map(([name, text]) => html`<div class="command" key=${name}><div class="payload-head"><b>${name}</b><span class="spring"></span><${CopyButton} text=${text}/></div><pre dir="ltr">${visible(text)}</pre></div>`)}
    <div class="buttons"><button type="button" onClick=${close}>Close</button>
      <button type="button" class="main" autofocus onClick=${start}>Open in the console</button></div>`;
}
