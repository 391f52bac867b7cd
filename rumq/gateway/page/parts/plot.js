// A plot over time, of uPlot, which is loaded when the first one is shown. Colours are those of style.css.
import { html, useEffect, useRef } from "./dom.js";
import { byteRate, bytes, short, timeOfDay } from "./format.js";

let loading = null;

function library() {
  loading ??= new Promise((resolve, reject) => {
    const at = new URL("../vendor/", import.meta.url);
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("uPlot.css", at).href });
    const script = Object.assign(document.createElement("script"), { src: new URL("uPlot.js", at).href });
    script.onload = () => resolve(globalThis.uPlot);
    script.onerror = () => reject(new Error("the plots could not be loaded"));
    document.head.append(style, script);
  });
  return loading;
}

// The colour of a token, as the theme has it now: a canvas does not know var().
function colour(token) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${token})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const faded = (rgb, part) => rgb.replace(/^rgb\(([^)]*)\)$/, `rgba($1, ${part})`);

// Steps of the axis: of bytes powers of two, else 1, 2 and 5 times powers of ten.
const BINARY = Array.from({ length: 60 }, (_, power) => 2 ** power);
const DECIMAL = Array.from({ length: 24 }, (_, power) => power - 9).flatMap((power) => [1, 2, 5].map((one) => Number(`${one}e${power}`)));

export const stepsFor = (format) => (format === bytes || format === byteRate ? BINARY : DECIMAL);

function options({ series, format, width, height, cursor, onCursor }) {
  const dim = colour("dim");
  const line = colour("grid");
  const font = "11px system-ui, sans-serif";
  return {
    width, height, padding: [8, 6, 0, 0],
    legend: { show: false },
    hooks: { setCursor: [onCursor] },
    cursor: { points: { size: 5 }, y: false, drag: { x: false, y: false, setScale: false }, ...(cursor ? { sync: { key: cursor } } : {}) },
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.12 : 1] } },
    axes: [
      { stroke: dim, grid: { show: false }, ticks: { stroke: line, size: 4 }, font, size: 26, space: 46,
        values: [
          [86400, "{DD}.{MM}.", null, null, null, null, null, null, 1], [3600, "{HH}:{mm}", "\n{DD}.{MM}.", null, "\n{DD}.{MM}.", null, null, null, 1],
          [60, "{HH}:{mm}", "\n{DD}.{MM}.", null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1],
        ] },
      { stroke: dim, grid: { stroke: line, width: 1 }, ticks: { show: false }, font, size: 60, gap: 2, space: 34, incrs: stepsFor(format),
        values: (_, values) => values.map((value) => format(value)) },
    ],
    series: [
      {},
      ...series.map(({ label, token, fill }) => ({
        label, stroke: colour(token), width: 1.5, points: { show: false }, spanGaps: false, fill: fill ? faded(colour(token), 0.1) : undefined,
      })),
    ],
  };
}

// The values under the cursor, or the newest ones, and the time of those under the cursor.
function readings(plot, index) {
  const [times, ...values] = plot.data;
  const at = (list) => {
    if (index !== null && index !== undefined) return list[index];
    for (let i = list.length - 1; i >= 0; i -= 1) if (list[i] !== null && list[i] !== undefined) return list[i];
    return null;
  };
  return { values: values.map(at), time: index === null || index === undefined ? null : times[index] };
}

// times: seconds since 1970; series: [{label, token, fill, values: [number | null]}]; format: number -> text
// token: a colour of style.css, such as "plot-1"; cursor: plots of the same name show the same moment
export function Plot({ title, times, series, format = short, height = 150, cursor = "time" }) {
  const box = useRef(null);
  const legend = useRef(null);
  const plot = useRef(null);
  const shape = series.map((each) => each.label).join("|");
  const data = useRef(null);
  data.current = [times, ...series.map((each) => each.values)];
  function told() {
    const { values, time } = readings(plot.current ?? { data: data.current }, plot.current?.cursor.idx);
    legend.current.querySelectorAll("b").forEach((element, index) => { element.textContent = format(values[index]); });
    legend.current.querySelector("time").textContent = time === null ? "" : timeOfDay(time * 1e6);
  }
  useEffect(() => {
    let ended = false;
    const element = box.current;
    function draw(uPlot) {
      if (ended) return;
      if (plot.current) plot.current.destroy();
      const asked = { series, format, width: element.clientWidth || 300, height, cursor, onCursor: () => plot.current && told() };
      plot.current = new uPlot(options(asked), data.current, element);
    }
    library().then(draw, () => { element.textContent = "The plots could not be loaded."; });
    const resized = new ResizeObserver(() => plot.current && plot.current.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    const themed = () => globalThis.uPlot && draw(globalThis.uPlot);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", themed);
    addEventListener("themed", themed);
    return () => {
      ended = true;
      resized.disconnect();
      dark.removeEventListener("change", themed);
      removeEventListener("themed", themed);
      if (plot.current) plot.current.destroy();
      plot.current = null;
    };
  }, [shape, height]);
  useEffect(() => {
    if (plot.current) plot.current.setData(data.current);
    told();
  }, [times, ...series.map((each) => each.values)]);
  return html`<figure class="plot"><figcaption ref=${legend}><span>${title}</span><span class="legend">
      ${series.map(({ label, token }) => html`<span key=${label}><i class="mark ${token}"></i>${label} <b></b></span>`)}<time></time></span></figcaption>
    <div ref=${box} class="canvas" role="img" aria-label=${title}></div></figure>`;
}
