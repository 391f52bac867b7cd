// A payload with its kind, which is found and can be chosen by hand, and a button that copies it.
import { toast } from "./dialog.js";
import { html, useMemo, useState } from "./dom.js";
import { bytes as size } from "./format.js";
import { KINDS, decodePayload } from "./payload.js";

// payload: Uint8Array; whole: its length, if only its beginning is here; children: more tools
export function PayloadView({ payload, contentType = "", whole = payload.length, label = "Payload" }) {
  const [kind, setKind] = useState("");
  const found = useMemo(() => decodePayload(payload, { kind, contentType }), [payload, kind, contentType]);
  const cut = whole > payload.length ? `the first ${payload.length} of ${whole} bytes` : "";
  const note = [found.note, cut].filter(Boolean).join("; ");
  return html`<div class="payload">
    <div class="payload-head">
      <label><span class="unheard">Shown as</span><select value=${kind} onChange=${(event) => setKind(event.target.value)}>
        <option value="">${kind ? "By itself" : `${KINDS[found.kind]} (found)`}</option>
        ${Object.entries(KINDS).map(([name, text]) => html`<option key=${name} value=${name}>${text}</option>`)}</select></label>
      <span class="dim">${size(whole)}</span>
      ${contentType && html`<span class="tag">${contentType.slice(0, 80)}</span>`}
      <span class="spring"></span>
      <${CopyButton} text=${found.text}/>
    </div>
    ${note && html`<p class="payload-note">${note}</p>`}
    <pre class=${found.kind === "hex" ? "dump" : ""} tabindex="0" aria-label=${label} dir="ltr">${found.text || html`<span class="dim">${whole ? "" : "an empty payload"}</span>`}</pre>
  </div>`;
}

// The clipboard is there on HTTPS and localhost only.
export function CopyButton({ text, label = "Copy" }) {
  if (!globalThis.navigator?.clipboard) return null;
  const copy = () => navigator.clipboard.writeText(text).then(() => toast("Copied."), () => toast("The browser did not allow to copy.", "warn"));
  return html`<button type="button" class="small" onClick=${copy}>${label}</button>`;
}
