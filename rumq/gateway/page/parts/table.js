// A table of rows that the server searched, sorted and paged: headers that sort, rows by arrow keys, Enter opens one.
import { html, useRef } from "./dom.js";
import { Icon } from "./icons.js";
import { count } from "./format.js";

export const PAGE_ROWS = 50;

// columns: [{key, title, help, number, sort, cell: (row) -> vnode, wide, grow}]
//   sort: the server's name of the order; without it the column is not offered
//   number: to the right, with digits of one width; wide: left out on narrow screens; grow: takes what is left
// rows: null while they are on their way; rowKey: (row) -> text; rowHref: (row) -> href, opened by Enter and click
// sort, onSort; offset, leftOut (of the answer: with those skipped), limit, onOffset: of a page; empty: a sentence
export function Table({ columns, rows, rowKey, rowHref, sort, onSort, empty = "There is nothing.", label, ...paging }) {
  const body = useRef(null);
  function keyed(event) {
    const row = event.target.closest("tr");
    if (!row || event.target !== row) return;
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (step) {
      const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
      if (next) next.focus();
      event.preventDefault();
    } else if (event.key === "Home" || event.key === "End") {
      const all = body.current.children;
      all[event.key === "Home" ? 0 : all.length - 1].focus();
      event.preventDefault();
    } else if (event.key === "Enter") {
      const href = row.dataset.href;
      if (href) location.hash = href;
    }
  }
  function clicked(event) {
    const row = event.target.closest("tr");
    if (!row || !row.dataset.href || event.target.closest("a, button, input") || String(getSelection())) return;
    location.hash = row.dataset.href;
  }
  return html`<div class="table">
    <div class="scroll"><table aria-label=${label}>
      <thead><tr>${columns.map((column) => html`<${Head} key=${column.key} column=${column} sort=${sort} onSort=${onSort}/>`)}</tr></thead>
      <tbody ref=${body} onKeyDown=${keyed} onClick=${clicked}>
        ${rows && rows.map((row, index) => html`<tr key=${rowKey(row)} tabindex=${rowHref ? (index ? -1 : 0) : undefined} data-href=${rowHref && rowHref(row)}
            class=${rowHref ? "opens" : ""}>
          ${columns.map((column) => html`<td key=${column.key} class=${classes(column)}>${column.cell(row)}</td>`)}</tr>`)}
      </tbody>
    </table></div>
    ${rows && !rows.length && html`<p class="empty">${empty}</p>`}
    ${!rows && html`<p class="empty">Loading …</p>`}
    ${rows && paging.onOffset && html`<${Paging} shown=${rows.length} ...${paging}/>`}
  </div>`;
}

const classes = (column) => [column.number && "number", column.wide && "wide", column.grow && "grow", column.tight && "tight"].filter(Boolean).join(" ");

function Head({ column, sort, onSort }) {
  const sorted = column.sort && sort === column.sort;
  return html`<th scope="col" class=${classes(column)} title=${column.help} aria-sort=${sorted ? (column.number ? "descending" : "ascending") : undefined}>
    ${column.sort && onSort
      ? html`<button type="button" class="plain sort ${sorted ? "on" : ""}" onClick=${() => onSort(column.sort)}>${column.title}<span class="arrow" aria-hidden="true">${column.number ? "↓" : "↑"}</span></button>`
      : column.title}
  </th>`;
}

// The server answers with rows up to an offset of 10,000; searching finds the others.
function Paging({ shown, offset = 0, leftOut = 0, limit = PAGE_ROWS, onOffset }) {
  const total = shown + leftOut;
  if (total <= limit && !offset) return html`<p class="paging"><span>${count(total)} in all</span></p>`;
  const last = offset + shown;
  return html`<nav class="paging" aria-label="Pages">
    <span>${shown ? `${count(offset + 1)} to ${count(last)} of ${count(total)}` : `none of ${count(total)}`}</span>
    <button type="button" disabled=${!offset} onClick=${() => onOffset(Math.max(0, offset - limit))}><${Icon} name="left"/> Previous</button>
    <button type="button" disabled=${last >= total || last + limit > 10000} onClick=${() => onOffset(offset + limit)}>Next <${Icon} name="right"/></button>
  </nav>`;
}

// A search field that `/` goes to.
export function Search({ value, onInput, placeholder, label = placeholder }) {
  return html`<label class="search"><${Icon} name="search"/>
    <input type="search" value=${value} placeholder=${placeholder} aria-label=${label} data-search autocomplete="off" spellcheck=${false}
      onInput=${(event) => onInput(event.target.value)}/></label>`;
}
