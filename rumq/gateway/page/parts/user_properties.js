// The user properties of a message, as names and values. MQTT 5.0, 3.3.2.3.7.
import { html } from "./dom.js";
import { Name } from "./name.js";

export function UserProperties({ list }) {
  if (!list || !list.length) return null;
  return html`<dl class="facts properties">${list.map(([name, value]) => html`<dt><${Name} text=${name}/></dt><dd><${Name} text=${value} none="(empty)"/></dd>`)}</dl>`;
}
