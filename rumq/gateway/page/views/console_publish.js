// The form that publishes: topic, payload as text or hex, QoS, retain, and the properties of MQTT 5.
import { toast } from "../parts/dialog.js";
import { html, useState } from "../parts/dom.js";
import { useStore } from "../parts/store.js";

export function PublishForm({ session, topic }) {
  const state = useStore(session.state);
  const [fault, setFault] = useState(null);
  const [level, setLevel] = useState("1");
  async function submit(event) {
    event.preventDefault();
    const { elements } = event.target;
    setFault(null);
    try {
      const payload = elements.format.value === "hex" ? bytesOfHex(elements.payload.value) : elements.payload.value;
      const name = elements.topic.value;
      const qos = Number(elements.qos.value);
      const note = await session.publish({ topic: name, payload, qos, retain: elements.retain.checked, properties: propertiesOf(elements) });
      toast(`${qos ? "Published and acknowledged" : "Sent"}. ${note}`.trim());
    } catch (error) {
      setFault(error.message);
    }
  }
  // Ctrl+Enter in the payload publishes.
  const keyed = (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form.requestSubmit();
  return html`<section class="panel"><header><h2>Publish</h2></header>
    <form id="publish" onSubmit=${submit}>
      <label class="field"><span>Topic</span><input name="topic" required placeholder="plant/7/state" defaultValue=${topic ?? ""} autocomplete="off" spellcheck=${false}/></label>
      <label class="field"><span>Payload</span><textarea name="payload" rows="4" spellcheck=${false} onKeyDown=${keyed} placeholder='{"celsius": 21.5}'></textarea></label>
      <div class="row">
        <label class="field"><span>As</span><select name="format"><option value="text">text</option><option value="hex">hex</option></select></label>
        <label class="field"><span>QoS</span><select name="qos" value=${level} onChange=${(event) => setLevel(event.target.value)}>${["0", "1", "2"].map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>
        <label class="check"><input type="checkbox" name="retain"/> <span>Retain</span></label></div>
      ${session.version === 5 && html`<details><summary>Properties</summary>
        <label class="field"><span>Content type</span><input name="contentType" placeholder="application/json" autocomplete="off"/></label>
        <div class="row"><label class="field"><span>Expires after, s</span><input name="expiry" type="number" min="1"/></label>
          <label class="field"><span>Response topic</span><input name="responseTopic" autocomplete="off" spellcheck=${false}/></label></div>
        <label class="field"><span>Correlation data</span><input name="correlation" autocomplete="off" spellcheck=${false}/></label>
        <label class="field"><span>User properties, name=value</span><textarea name="user" rows="2" spellcheck=${false}></textarea></label></details>`}
      ${fault && html`<p class="fault" role="alert">${fault}</p>`}
      <div class="row"><span class="spring"></span><button type="submit" class="main" disabled=${state.kind !== "connected"}>Publish</button></div>
    </form></section>`;
}

// "01 ff" -> bytes. throws: an error with a sentence
export function bytesOfHex(text) {
  const digits = text.replace(/[\s:,]|0x/gi, "");
  if (!/^([0-9a-f]{2})*$/i.test(digits)) throw new Error("The payload is not hex: two digits a byte.");
  const bytes = new Uint8Array(digits.length / 2);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = parseInt(digits.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}

function propertiesOf(elements) {
  const text = (name) => elements[name]?.value.trim() ?? "";
  const properties = {};
  if (text("contentType")) properties.contentType = text("contentType");
  if (text("expiry")) properties.messageExpiryInterval = Number(text("expiry"));
  if (text("responseTopic")) properties.responseTopic = text("responseTopic");
  if (text("correlation")) properties.correlationData = text("correlation");
  const user = {};
  for (const line of text("user").split("\n").filter(Boolean)) {
    const [name, ...value] = line.split("=");
    (user[name.trim()] ??= []).push(value.join("=").trim());
  }
  if (Object.keys(user).length) properties.userProperties = user;
  return properties;
}
