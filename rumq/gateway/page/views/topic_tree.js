// The topic tree: levels are asked for when they are opened. Arrow keys walk it, Enter opens a topic.
import { get } from "../parts/api.js";
import { html, useRef, usePoll, useState } from "../parts/dom.js";
import { count, plural, rate } from "../parts/format.js";
import { Icon } from "../parts/icons.js";
import { LastValue } from "../parts/last_value.js";
import { Name } from "../parts/name.js";
import { go, link } from "../parts/router.js";
import { Fault } from "../parts/view_place.js";

const SECONDS = 5;
const MANY = 50_000; // topics
const FIRST_ROWS = 50;
const MORE_ROWS = 200;
const OPEN_MAX = 24; // levels that are open at once: each is a question

const ROOT = null; // "" is the prefix of the empty first level, below which topics begin with a slash

// prefix -> rows to ask for; it outlives the view, so that a person comes back to the tree as it was left
let opened = new Map([[ROOT, FIRST_ROWS]]);

export function TopicTree() {
  const [open, setOpen] = useState(opened);
  const [many, setMany] = useState(false);
  const before = useRef(null); // {at, records, rates} of the answer before
  const body = useRef(null);
  const change = (act) => {
    opened = new Map(open);
    act(opened);
    setOpen(opened);
  };
  const { data, error } = usePoll(async (signal) => {
    const answers = await Promise.all([...open].map(([prefix, limit]) => get("tree", { prefix, below_empty: prefix === "" ? true : null, limit }, signal)));
    const levels = new Map([...open.keys()].map((prefix, number) => [prefix, answers[number]]));
    const root = levels.get(ROOT);
    setMany(root.levels.reduce((sum, row) => sum + row.topics, 0) > MANY);
    const rates = ratesOf(levels, before);
    return { levels, rates, turn: Date.now() };
  }, many ? 0 : SECONDS, [JSON.stringify([...open])]);
  const rows = data ? [...rowsOf(data.levels, open, ROOT, 0)] : null;

  function toggle(row) {
    if (!row.below) return;
    change((next) => {
      if (next.has(row.prefix)) for (const each of [...next.keys()]) { if (each === row.prefix || each?.startsWith(`${row.prefix}/`)) next.delete(each); }
      else {
        next.set(row.prefix, FIRST_ROWS);
        const oldest = [...next.keys()].find((each) => each !== ROOT && !row.prefix.startsWith(`${each}/`) && each !== row.prefix);
        if (next.size > OPEN_MAX && oldest) next.delete(oldest);
      }
    });
  }
  function keyed(event) {
    const line = event.target.closest("tr");
    const row = line && event.target === line && rows[Number(line.dataset.row)];
    if (!row) return;
    const isOpen = open.has(row.prefix);
    const act = {
      ArrowDown: () => line.nextElementSibling?.focus(), ArrowUp: () => line.previousElementSibling?.focus(),
      j: () => line.nextElementSibling?.focus(), k: () => line.previousElementSibling?.focus(),
      Home: () => body.current.firstElementChild.focus(), End: () => body.current.lastElementChild.focus(),
      ArrowRight: () => (row.below && !isOpen ? toggle(row) : line.nextElementSibling?.focus()),
      ArrowLeft: () => (isOpen ? toggle(row) : parentLine(line)?.focus()),
      Enter: () => (row.is_topic ? go("/topic", { topic: row.prefix }) : row.more ? more(row) : toggle(row)),
      " ": () => toggle(row),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
  const more = (row) => change((next) => next.set(row.under, MORE_ROWS));
  function clicked(event) {
    const line = event.target.closest("tr");
    if (!line || event.target.closest("a, button") || String(getSelection())) return;
    const row = rows[Number(line.dataset.row)];
    line.focus();
    if (row.more) more(row);
    else if (row.below) toggle(row);
    else go("/topic", { topic: row.prefix });
  }
  return html`<${Fault} error=${error}/>
    <div class="table tree"><div class="scroll"><table role="treegrid" aria-label="Topic tree">
      <thead><tr><th scope="col">Level</th><th scope="col" class="number" title="topics at and below it">Topics</th>
        <th scope="col" class="number" title="published to them, since the answer before">Rate</th>
        <th scope="col" class="number wide" title="published so far, also those that retention removed">Records</th><th scope="col" class="wide">Last value</th></tr></thead>
      <tbody ref=${body} onKeyDown=${keyed} onClick=${clicked}>
        ${rows && rows.map((row, number) => (row.more ? MoreRow(row, number) : LevelRow(row, number, open.has(row.prefix), data)))}
      </tbody></table></div>
      ${rows && !rows.length && html`<p class="empty">Nothing has been published yet.</p>`}
      ${!rows && !error && html`<p class="empty">Loading …</p>`}
      ${rows && rows.length > 0 && html`<p class="paging"><span>${plural(data.levels.get(ROOT).levels.reduce((sum, row) => sum + row.topics, 0), "topic")}${many ? ", too many to be refreshed by itself" : ""}</span></p>`}
    </div>`;
}

function LevelRow(row, number, isOpen, { rates, turn }) {
  const toggle = row.below ? html`<span class="twist ${isOpen ? "open" : ""}"><${Icon} name="right"/></span>` : html`<span class="twist"></span>`;
  const name = html`<${Name} text=${row.level} none="(empty level)" href=${row.is_topic ? link("/topic", { topic: row.prefix }) : undefined}/>`;
  return html`<tr key=${`r${row.prefix}`} data-row=${number} data-depth=${row.depth} role="row" tabindex=${number ? -1 : 0} class="opens"
      aria-level=${row.depth + 1} aria-expanded=${row.below ? isOpen : undefined}>
    <td class="grow"><span class="branch" style=${{ paddingLeft: `${Math.min(row.depth, 16) * 18}px` }}>${toggle}${name}${row.below && html`<span class="dim">/</span>`}</span></td>
    <td class="number">${row.below ? count(row.topics) : ""}</td>
    <td class="number">${rates.has(row.prefix) ? rate(rates.get(row.prefix)) : html`<span class="dim">–</span>`}</td>
    <td class="number wide">${count(row.records)}</td>
    <td class="wide">${row.is_topic && html`<${LastValue} topic=${row.prefix} turn=${turn}/>`}</td></tr>`;
}

function MoreRow(row, number) {
  return html`<tr key=${`m${row.under}`} data-row=${number} data-depth=${row.depth} role="row" tabindex="-1" class=${row.more === "rows" ? "opens" : ""} aria-level=${row.depth + 1}>
    <td class="grow" colspan="5"><span class="branch dim" style=${{ paddingLeft: `${Math.min(row.depth, 16) * 18 + 22}px` }}>
      ${plural(row.left, "level")} more${row.more === "rows" ? ": show them" : ": search for a filter to find them"}</span></td></tr>`;
}

// The rows that are seen, in order; `below`: whether there is something to open.
export function* rowsOf(levels, open, prefix, depth) {
  const answer = levels.get(prefix);
  if (!answer) return;
  for (const level of answer.levels) {
    const below = level.topics > (level.is_topic ? 1 : 0);
    yield { ...level, depth, below };
    if (below && open.has(level.prefix)) yield* rowsOf(levels, open, level.prefix, depth + 1);
  }
  if (answer.left_out) yield { more: (open.get(prefix) ?? 0) < MORE_ROWS ? "rows" : "search", under: prefix, prefix: `${prefix}\u0000more`, left: answer.left_out, depth };
}

// prefix -> records a second since the answer before; of one that came a moment ago the rates stay
function ratesOf(levels, before) {
  const at = performance.now() / 1000;
  const last = before.current;
  if (last && at - last.at < 1) {
    for (const { levels: rows } of levels.values()) for (const row of rows) if (!last.records.has(row.prefix)) last.records.set(row.prefix, row.records);
    return last.rates;
  }
  const records = new Map();
  const rates = new Map();
  for (const { levels: rows } of levels.values()) {
    for (const row of rows) {
      records.set(row.prefix, row.records);
      if (last?.records.has(row.prefix)) rates.set(row.prefix, (row.records - last.records.get(row.prefix)) / (at - last.at));
    }
  }
  before.current = { at, records, rates };
  return rates;
}

function parentLine(line) {
  for (let each = line; each; each = each.previousElementSibling) if (Number(each.dataset.depth) < Number(line.dataset.depth)) return each;
  return null;
}
