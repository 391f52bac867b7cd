// Messages of a queue, the oldest first: looked at, not consumed. A row opens its payload and headers.
import { html, useState } from "../parts/dom.js";
import { bytes, plural, time } from "../parts/format.js";
import { Name } from "../parts/name.js";
import { bytesOf, payloadLine } from "../parts/payload.js";
import { PayloadView } from "../parts/payload_view.js";
import { Panel } from "../parts/panel.js";
import { UserProperties } from "../parts/user_properties.js";

// answer: of REST; right: what stands at the right of the title
export function QueueMessages({ title, note, answer, right, empty }) {
  const [open, setOpen] = useState(null);
  const rows = answer.messages ?? [];
  if (answer.forbidden) return html`<${Panel} title=${title} note=${note}><p class="notice" role="status">${answer.forbidden}</p></${Panel}>`;
  return html`<${Panel} flush title=${title} note=${note} right=${right}>
    <div class="scroll"><table aria-label=${title}><thead><tr><th>Message</th><th class="wide">Pushed</th><th class="wide">Key</th><th class="number wide">Size</th><th>Payload</th></tr></thead>
      <tbody>${rows.map((row) => html`<${MessageRows} key=${row.id} row=${row} isOpen=${open === row.id} toggle=${() => setOpen(open === row.id ? null : row.id)}/>`)}</tbody></table></div>
    ${!rows.length && html`<p class="empty">${empty}</p>`}</${Panel}>`;
}

function MessageRows({ row, isOpen, toggle }) {
  const payload = bytesOf(row);
  const keyed = (event) => {
    if (event.target !== event.currentTarget) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
  };
  return html`<tr class="opens" tabindex="0" aria-expanded=${isOpen} onKeyDown=${keyed} onClick=${(event) => !event.target.closest("button, a") && toggle()}>
      <td>${row.number}${row.topic && html` <${Name} text=${row.topic}/>`}</td><td class="wide">${time(row.pushed_us)}</td><td class="wide"><${Name} text=${row.key}/></td><td class="number wide">${bytes(payload.length)}</td>
      <td class="grow"><span class="value">${payloadLine(payload, row.content_type)}</span></td></tr>
    ${isOpen && html`<tr class="detail"><td colspan="5"><${PayloadView} payload=${payload} contentType=${row.content_type}/>
      <dl class="facts properties"><dt>Id</dt><dd><${Name} text=${row.id}/></dd><dt>Pushed</dt><dd>${new Date(row.pushed_us / 1000).toISOString()}</dd>
      ${row.origin && html`<dt>Came from</dt><dd><${Name} text=${row.origin}/>, after ${plural(row.dead_tries, "try", "tries")}</dd>`}</dl>
      <${UserProperties} list=${row.headers}/></td></tr>`}`;
}
