// The sign-in form: a token of `rumqd token add`, tried before it is kept.
import { whoIs } from "../parts/api.js";
import { html, useEffect, useRef, useState } from "../parts/dom.js";
import { me, signIn, why } from "../parts/session.js";
import { useStore } from "../parts/store.js";
import { ThemeSwitch } from "../parts/theme_switch.js";

export function SignIn() {
  const [keep, setKeep] = useState(false);
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  const sentence = useStore(why);
  const field = useRef(null);
  useEffect(() => field.current.focus(), []); // autofocus is for the first page of a tab only: after a sign-out the focus was nowhere
  async function submit(event) {
    event.preventDefault();
    const given = event.target.elements.token.value.trim();
    if (!given || busy) return;
    setBusy(true);
    setFault(null);
    try {
      const who = await whoIs(given);
      me.set(who);
      signIn(given, keep);
      setTimeout(() => document.getElementById("main")?.focus()); // the form that had the focus is gone
    } catch (error) {
      setFault(error.message);
      setBusy(false);
      event.target.elements.token.select();
    }
  }
  return html`<main class="sign-in">
    <form onSubmit=${submit}>
      <div class="brand"><img src="page/icon.svg" width="28" height="28" alt=""/> <h1>rumq</h1><span class="spring"></span><${ThemeSwitch}/></div>
      <p class="dim">${location.host}</p>
      ${sentence && !fault && html`<p class="notice" role="status">${sentence}</p>`}
      <label class="field" for="token"><span>Token</span>
        <input id="token" name="token" ref=${field} type="password" autocomplete="current-password" spellcheck=${false} required aria-describedby="token-help"/></label>
      <label class="check"><input type="checkbox" id="keep" checked=${keep} onChange=${(event) => setKeep(event.target.checked)}/> <span>Keep me signed in on this computer</span></label>
      ${fault && html`<p class="fault" role="alert">${fault}</p>`}
      <div class="buttons"><button class="main" type="submit" disabled=${busy}>${busy ? "Asking …" : "Sign in"}</button></div>
      <p class="dim small" id="token-help">On the broker's machine, <code>rumqd token add NAME --role read</code> prints a token once. Add <code>--role administer</code> for one that may change things.</p>
    </form>
  </main>`;
}
