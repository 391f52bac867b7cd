// Who is known, and may this client do that: the rules of the broker asked and explained.
import { get } from "../parts/api.js";
import { html, usePoll, useState } from "../parts/dom.js";
import { count, plural } from "../parts/format.js";
import { Name, visible } from "../parts/name.js";
import { Panel, Tag } from "../parts/panel.js";
import { link, setParams } from "../parts/router.js";
import { may, me } from "../parts/session.js";
import { useStore } from "../parts/store.js";
import { Search } from "../parts/table.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = "Access";
const USERS_SHOWN = 200;
const ACTIONS = [["publish", "publish to"], ["retain", "publish retained to"], ["subscribe", "subscribe to"], ["replay", "replay"], ["will", "leave a will for"]];

export function view({ user = "", client = "", action = "publish", topic = "", find = "" }) {
  const known = useStore(me);
  const allowed = !known || may("administer");
  const users = usePoll((signal) => (allowed ? get("users", {}, signal) : Promise.resolve({ users: [] })), 0, [allowed]);
  if (!allowed) {
    return html`<${Heading} title="Access"/><div class="panel"><p class="empty">Users and rules are shown to tokens with the role administer. This one, ${visible(known.name)}, has ${known.roles.join(" and ")}:
      sign in with another, or make one on the broker's machine with <code>rumqd token add NAME --role administer</code>.</p></div>`;
  }
  return html`<${Heading} title="Access" line="Users of the password file, and what the rules say about them. Tokens and certificates may name others."/>
    <${Fault} error=${users.error}/>
    <${Question} user=${user} client=${client} action=${action} topic=${topic}/>
    <${Users} users=${users.data && users.data.users} find=${find} action=${action} topic=${topic}/>`;
}

function Question(given) {
  const [asked, setAsked] = useState(given);
  const [result, setResult] = useState(null);
  const [fault, setFault] = useState(null);
  const set = (changes) => { setAsked((was) => ({ ...was, ...changes })); setResult(null); };
  if (given.user !== asked.given) setAsked((was) => ({ ...was, user: given.user, given: given.user }));
  async function ask(event) {
    event.preventDefault();
    setFault(null);
    setParams({ user: asked.user, client: asked.client, action: asked.action, topic: asked.topic });
    try {
      const answer = await get("rules", { user: asked.user, client: asked.client, action: asked.action, topic: asked.topic });
      setResult({ ...asked, ...answer });
    } catch (error) {
      setResult(null);
      setFault(error);
    }
  }
  const field = (name, label, placeholder, required = false) => html`<label class="field"><span>${label}</span><input name=${name} value=${asked[name]} placeholder=${placeholder} required=${required}
    autocomplete="off" spellcheck=${false} onInput=${(event) => set({ [name]: event.target.value })}/></label>`;
  return html`<${Panel} title="May this client do that?">
    <form class="question" onSubmit=${ask}>
      ${field("user", "User", "anonymous")}${field("client", "Client id", "any")}
      <label class="field"><span>Wants to</span><select value=${asked.action} onChange=${(event) => set({ action: event.target.value })}>${ACTIONS.map(([name, text]) => html`<option key=${name} value=${name} selected=${name === asked.action}>${text}</option>`)}</select></label>
      ${field("topic", "Topic, or filter", "plant/7/temperature", true)}
      <button type="submit" class="main">Ask</button>
    </form>
    <${Fault} error=${fault}/>
    ${result && html`<${Answer} result=${result}/>`}
  </${Panel}>`;
}

function Answer({ result }) {
  const wish = ACTIONS.find(([name]) => name === result.action)?.[1] ?? result.action;
  const rules = result.reasons;
  return html`<div class="answer" role="status">
    <p><${Tag} kind=${result.allowed ? "good" : "bad"}>${result.allowed ? "allowed" : "refused"}</${Tag}>
      ${" "}<b>${result.user ? html`<${Name} text=${result.user}/>` : "An anonymous client"}</b>${result.client && html`, as <${Name} text=${result.client}/>,`} ${result.allowed ? "may" : "may not"} ${wish} <${Name} text=${result.topic}/>.</p>
    ${!result.rules ? html`<p class="dim">There are no rules: everything is allowed to everybody who may connect.</p>`
      : !rules.length ? html`<p class="dim">No rule speaks of it, and what no rule allows is refused.</p>`
      : html`<p class="dim">${plural(rules.length, "rule")} ${rules.length === 1 ? "speaks" : "speak"} of it; where one denies, it is refused:</p>
        <ul class="plainlist">${rules.map((rule, index) => html`<li key=${index}>Rule ${rule.rule} <b class=${rule.effect === "denies" ? "bad" : "good"}>${rule.effect}</b> <${Name} text=${rule.filter}/></li>`)}</ul>`}
  </div>`;
}

function Users({ users, find, action, topic }) {
  const shown = users && users.filter((name) => name.toLowerCase().includes(find.toLowerCase()));
  return html`<${Panel} title="Users" note=${users ? plural(users.length, "user") : ""} right=${users && users.length > 10 && html`<${Search} value=${find} placeholder="User" onInput=${(text) => setParams({ find: text })}/>`}>
    ${!users ? html`<p class="dim">Loading …</p>` : !users.length ? html`<p class="dim">There is no password file, or it is empty.</p>`
      : html`<ul class="users">${shown.slice(0, USERS_SHOWN).map((name) => html`<li key=${name}><${Name} text=${name}/>
          <span class="dim small"><a href=${link("/clients", { user: name })} aria-label=${`Clients of ${visible(name)}`}>clients</a> · <a href=${link("/access", { user: name, action, topic, find })} aria-label=${`Rules of ${visible(name)}`}>rules</a></span></li>`)}</ul>
        ${shown.length > USERS_SHOWN && html`<p class="dim">and ${count(shown.length - USERS_SHOWN)} more: search for them.</p>`}`}
  </${Panel}>`;
}
