// Plots of the log: its size, the free space of its disk, what comes in, how long a sync takes.
import { get } from "./api.js";
import { html, useState, usePoll } from "./dom.js";
import { bytes, duration } from "./format.js";
import { Plot } from "./plot.js";

const SPANS = [[3600, "1 h"], [86_400, "24 h"], [14 * 86_400, "14 d"]];

export function LogPlot() {
  const [seconds, setSeconds] = useState(3600);
  const { data } = usePoll((signal) => get("history", { names: "log_bytes,disk_free_bytes,bytes_in,fsync_p99", seconds, points: 300 }, signal), seconds > 3600 ? 60 : 10, [seconds]);
  const series = data && data.series;
  const times = series ? (series.log_bytes ?? []).map((_, number) => data.start_us / 1e6 + number * data.step_seconds) : [];
  const one = (label, token, name) => [{ label, token, fill: true, values: series[name] ?? [] }];
  return html`<div class="tools"><h2>Over time</h2><span class="spring"></span>
      <div class="segmented" role="group" aria-label="Time span">${SPANS.map(([span, text]) => html`<button key=${span} type="button" aria-pressed=${span === seconds} onClick=${() => setSeconds(span)}>${text}</button>`)}</div></div>
    ${series && html`<div class="plots">
      <${Plot} title="Log on disk" times=${times} series=${one("log", "plot-1", "log_bytes")} format=${bytes}/>
      <${Plot} title="Free space of the disk" times=${times} series=${one("free", "plot-2", "disk_free_bytes")} format=${bytes}/>
      <${Plot} title="Received from clients, bytes/s" times=${times} series=${one("received", "plot-3", "bytes_in")} format=${bytes}/>
      <${Plot} title="Sync to the disk, 99 of 100 within" times=${times} series=${one("fsync", "plot-4", "fsync_p99")} format=${duration}/></div>`}`;
}
