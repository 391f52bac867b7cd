// Where the current view is drawn: it is loaded when it is wanted, and a fault of one view leaves the others alone.
import { Component, html, useEffect, useState } from "./dom.js";
import { viewAt } from "../views/index.js";

const loaded = new Map();

export function View({ path, params }) {
  const [, redraw] = useState(0);
  const [fault, setFault] = useState(null);
  const entry = viewAt(path);
  const module = entry && loaded.get(path);
  useEffect(() => {
    setFault(null);
    if (!entry || loaded.has(path)) return;
    entry.load().then((found) => { loaded.set(path, found); redraw((was) => was + 1); }, (error) => setFault(error.message));
  }, [path]);
  const title = module && (typeof module.title === "function" ? module.title(params) : module.title);
  useEffect(() => {
    document.title = title ? `${title} · rumq` : "rumq";
  }, [title]);
  if (!entry) return html`<h1>There is no such view</h1><p>The address <code>#${path}</code> leads nowhere. <a href="#/">Overview</a></p>`;
  if (fault) return html`<h1>${entry.title ?? "This view"}</h1><p class="fault" role="alert">The view could not be loaded: ${fault}</p>`;
  if (!module) return html`<${Loading}/>`;
  return html`<${Guard} key=${path}><${module.view} ...${params}/></${Guard}>`;
}

class Guard extends Component {
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error });
  }

  render({ children }, { error }) {
    if (!error) return children;
    return html`<p class="fault" role="alert">This view failed: ${error.message}. <button type="button" onClick=${() => this.setState({ error: null })}>Try again</button></p>`;
  }
}

// The heading of a view: title, what it is in a line, and its actions at the right.
export function Heading({ title, line, children }) {
  return html`<div class="heading"><div><h1>${title}</h1>${line && html`<p class="dim">${line}</p>`}</div><div class="actions">${children}</div></div>`;
}

// The fault of a poll, above what was known before.
export function Fault({ error }) {
  return error && error.status !== 0 && error.status !== 401 ? html`<p class="fault" role="alert">${error.message}</p>` : null;
}

// What stands where an answer will be: never as if there were nothing.
export function Loading() {
  return html`<p class="panel empty" role="status" aria-busy="true">Loading …</p>`;
}
