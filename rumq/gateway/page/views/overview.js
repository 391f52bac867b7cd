// The broker at a glance: numbers, plots over time, who is behind and why, what was lost, the latest warnings.
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { bytes, count, duration } from "../parts/format.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Overview";

export function view() {
  const { data, error } = usePoll((signal) => get("status", {}, signal), 5);
  return html`<${Heading} title="Overview"/><${Fault} error=${error}/>
    ${data && html`<dl class="figures">
      <div><dt>Connected</dt><dd>${count(data.connected)}</dd></div>
      <div><dt>Sessions</dt><dd>${count(data.sessions)}</dd></div>
      <div><dt>Log</dt><dd>${bytes(data.log_bytes)}</dd></div>
      <div><dt>Up</dt><dd>${duration(data.uptime_seconds)}</dd></div></dl>`}`;
}
