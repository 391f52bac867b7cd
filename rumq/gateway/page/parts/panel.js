// Panels, rows of figures, tags and choices: the small things that views are put together from.
import { html } from "./dom.js";

// title: text; note: dim text behind it; right: what stands at the right of the title
export function Panel({ title, note, right, children, flush = false }) {
  return html`<section class="panel"><header><h2>${title}</h2>${note && html`<span class="dim small">${note}</span>`}<span class="spring"></span>${right}</header>
    ${flush ? children : html`<div class="body">${children}</div>`}</section>`;
}

// list: [[name, value, small text, colour]]; kind: "five" for five in a row
export function Figures({ list, kind = "" }) {
  return html`<dl class="figures ${kind}">${list.filter(Boolean).map(([name, value, small, colour]) => html`<div key=${name}><dt>${name}</dt>
    <dd class=${colour ?? ""}>${value}${html`<small title=${typeof small === "string" ? small : undefined}>${small || "\u00a0"}</small>`}</dd></div>`)}</dl>`;
}

// list: [[name, vnode]]
export function Facts({ list }) {
  return html`<dl class="facts">${list.filter(Boolean).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

export function Tag({ kind = "", children, title }) {
  return html`<span class="tag ${kind}" title=${title}>${children}</span>`;
}

// A choice of few: options: [[value, text]]
export function Segmented({ label, options, value, onChoose }) {
  return html`<div class="segmented" role="group" aria-label=${label}>${options.map(([option, text]) => html`<button key=${option} type="button"
    aria-pressed=${option === value ? "true" : "false"} onClick=${() => onChoose(option)}>${text}</button>`)}</div>`;
}

// part: 0 to 1
export function Bar({ part, kind = "", title }) {
  const width = `${Math.max(0, Math.min(100, part * 100)).toFixed(1)}%`;
  return html`<div class="bar ${kind}" title=${title}><i ref=${(element) => element && (element.style.width = width)}></i></div>`;
}
