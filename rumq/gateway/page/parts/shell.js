// The frame around the views: header with the broker's health, navigation, the banner while the gateway is away.
import { VIEWS, viewAt } from "../views/index.js";
import { away, get, whoIs } from "./api.js";
import { Layer, openDialog } from "./dialog.js";
import { html, useEffect, useRef, useState, usePoll } from "./dom.js";
import { duration } from "./format.js";
import { Icon } from "./icons.js";
import { bind, listed } from "./keys.js";
import { go, place } from "./router.js";
import { may, me, signOut } from "./session.js";
import { status } from "./status.js";
import { useStore } from "./store.js";
import { ThemeSwitch } from "./theme_switch.js";
import { View } from "./view_place.js";

const SECTIONS = ["", "Data", "Broker", "Tools"];

function search() {
  const field = document.querySelector("[data-search]");
  if (field) { field.focus(); field.select(); } else go("/clients");
}

function Help({ close }) {
  const keys = listed();
  return html`<h2 id="dialog-title">Keyboard</h2>
    <dl class="keys">${keys.map(([key, line]) => html`<div><dt>${key.split(" ").map((one) => html`<kbd>${one}</kbd>`)}</dt><dd>${line}</dd></div>`)}
      <div><dt><kbd>↓</kbd><kbd>↑</kbd></dt><dd>the next and the previous row of a table (also j, k)</dd></div>
      <div><dt><kbd>Enter</kbd></dt><dd>open the row</dd></div>
      <div><dt><kbd>Esc</kbd></dt><dd>close a dialog, leave a search</dd></div></dl>
    <div class="buttons"><button type="button" class="main" autofocus onClick=${close}>Close</button></div>`;
}

const help = () => openDialog(Help, { wide: true });

function Health() {
  const { data, error } = usePoll((signal) => get("status", {}, signal), 5);
  useEffect(() => status.set({ data, error }), [data, error]);
  const { data: ready } = usePoll(readiness, 5);
  const isAway = useStore(away);
  const fault = isAway || error;
  const kind = fault ? "bad" : ready && !ready.ok ? "warn" : ready ? "good" : "";
  const text = fault ? "away" : ready && !ready.ok ? "not ready" : ready ? "ready" : "…";
  return html`<div class="health" title=${ready && ready.why ? ready.why : "Every shard answers, has recovered and accepts messages"}>
    <span class="dot ${kind}"></span><span>${text}</span>
    ${data && html`<span class="dim wide">rumq ${data.version}</span><span class="dim wide">up ${duration(data.uptime_seconds)}</span>`}
  </div>`;
}

async function readiness(signal) {
  const response = await fetch(new URL("readyz", document.baseURI), { cache: "no-store", credentials: "omit", signal });
  return response.json();
}

function Away() {
  const lost = useStore(away);
  const [, redraw] = useState(0);
  useEffect(() => {
    if (!lost) return undefined;
    const timer = setInterval(() => redraw((was) => was + 1), 1000);
    return () => clearInterval(timer);
  }, [lost]);
  if (!lost) return null;
  return html`<div class="banner" role="alert"><${Icon} name="warning"/> The gateway does not answer since ${duration(Math.max(1, Math.round((Date.now() - lost.since) / 1000)))}.
    What is shown is what was known before; the page keeps trying.</div>`;
}

function Navigation({ open, close, path }) {
  const current = viewAt(path);
  return html`<nav class="views ${open ? "open" : ""}" aria-label="Views" onClick=${(event) => event.target.closest("a") && close()}>
    ${SECTIONS.map((section) => {
      const views = VIEWS.filter((view) => view.title && view.section === section && (!view.role || may(view.role)));
      return views.length > 0 && html`<div key=${section} class="section">${section && html`<h2>${section}</h2>`}
        ${views.map((view) => {
          const on = current && (view === current || view.path === current.parent);
          return html`<a key=${view.path} href=${`#${view.path}`} class=${on ? "on" : ""} aria-current=${on ? "page" : undefined}>
            <${Icon} name=${view.icon}/><span>${view.title}</span>${view.key && html`<kbd class="wide">g ${view.key}</kbd>`}</a>`;
        })}</div>`;
    })}
  </nav>`;
}

export function Shell() {
  const { path, params } = useStore(place);
  const who = useStore(me);
  const [open, setOpen] = useState(false);
  const main = useRef(null);
  useEffect(() => {
    if (!me.get()) whoIs(null).then((found) => me.set(found), () => {});
    const ends = VIEWS.filter((view) => view.key).map((view) => bind(`g ${view.key}`, () => go(view.path), view.title));
    ends.push(bind("/", search, "search"), bind("?", help, "this list"));
    ends.push(bind("t", () => document.getElementById("theme").click(), "theme: as the system, light, dark"));
    return () => ends.forEach((end) => end());
  }, []);
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>To the content</a>
    <header class="top">
      <button type="button" class="plain tool menu" aria-label="Views" aria-expanded=${open} onClick=${() => setOpen(!open)}><${Icon} name="menu"/></button>
      <a class="brand" href="#/"><img src="page/icon.svg" width="20" height="20" alt=""/><b>rumq</b></a>
      <span class="host" title="The gateway's address">${location.host}</span>
      <${Health}/>
      <span class="spring"></span>
      ${who && html`<span class="who wide" title=${who.roles ? `May: ${who.roles.join(", ")}` : ""}>${who.name}${who.roles && html` <span class="dim">${who.roles.join(", ")}</span>`}</span>`}
      <${ThemeSwitch}/>
      <button type="button" class="plain tool wide" title="Keyboard (?)" aria-label="Keyboard" onClick=${help}><${Icon} name="help"/></button>
      <button type="button" class="plain tool" id="sign-out" title="Sign out" aria-label="Sign out" onClick=${() => signOut()}><${Icon} name="out"/></button>
    </header>
    <${Away}/>
    <${Navigation} open=${open} close=${() => setOpen(false)} path=${path}/>
    <main id="main" ref=${main} tabindex="-1"><${View} path=${path} params=${params}/></main>
    <${Layer}/>`;
}
