// Plots of what the gateway remembers: /api/v1/history over five minutes to fourteen days.
import { get } from "../parts/api.js";
import { html, useMemo, usePoll } from "../parts/dom.js";
import { byteRate, bytes, duration, short } from "../parts/format.js";
import { Plot } from "../parts/plot.js";

const PLOTS = [
  { title: "Messages / s", format: short, series: [["published", "published", 1], ["delivered", "delivered", 2]] },
  { title: "Bytes / s", format: byteRate, series: [["bytes_in", "in", 1], ["bytes_out", "out", 2]] },
  { title: "Publish to acknowledgement", format: duration, series: [["acknowledge_p50", "p50", 1], ["acknowledge_p99", "p99", 3]] },
  { title: "Publish to delivery", format: duration, series: [["deliver_p50", "p50", 1], ["deliver_p99", "p99", 3]] },
  { title: "Farthest behind, records", format: short, series: [["behind_records_max", "behind", 4]] },
  { title: "Not delivered / s", format: short, series: [["undelivered", "undelivered", 4]] },
  { title: "Processor, cores", format: short, series: [["cpu", "cores", 1]] },
  { title: "Memory of all shards", format: bytes, series: [["memory_bytes", "memory", 2]] },
  { title: "Log on disk", format: bytes, series: [["log_bytes", "log", 1]] },
  { title: "Free space of the disk", format: bytes, series: [["disk_free_bytes", "free", 3]] },
];
const NAMES = [...new Set(PLOTS.flatMap((plot) => plot.series.map(([name]) => name)))];
const POINTS = 240;

// seconds -> how often it is asked anew
export const RANGES = [["300", "5 min"], ["3600", "1 h"], ["86400", "24 h"], ["1209600", "14 d"]];
const EVERY = { 300: 2, 3600: 10, 86400: 30, 1209600: 300 };

export function useHistory(seconds) {
  return usePoll((signal) => get("history", { names: NAMES.join(","), seconds, points: POINTS }, signal), EVERY[seconds] ?? 30, [seconds]);
}

// The newest value of a series that is known.
export function latest(history, name) {
  const values = history?.series?.[name] ?? [];
  for (let index = values.length - 1; index >= Math.max(0, values.length - 5); index -= 1) {
    if (values[index] !== null) return values[index];
  }
  return null;
}

export function HistoryPlots({ history }) {
  const times = useMemo(() => {
    if (!history) return [];
    const count = Math.max(0, ...Object.values(history.series).map((values) => values.length));
    return Array.from({ length: count }, (_, index) => history.start_us / 1e6 + index * history.step_seconds);
  }, [history]);
  if (!history) return html`<div class="plots">${PLOTS.map((plot) => html`<figure key=${plot.title} class="plot"><figcaption>${plot.title}</figcaption><div class="canvas"></div></figure>`)}</div>`;
  return html`<div class="plots">${PLOTS.map((plot) => html`<${Plot} key=${plot.title} title=${plot.title} times=${times} format=${plot.format}
    series=${plot.series.map(([name, label, number]) => ({ label, token: `plot-${number}`, fill: number === 1 || plot.series.length === 1, values: history.series[name] ?? [] }))}/>`)}</div>`;
}
