// Something that changes the broker: a dialog says what will happen and asks, then shows the answer or the fault.
import { act } from "./api.js";
import { openDialog, toast } from "./dialog.js";
import { html, useState } from "./dom.js";
import { may } from "./session.js";

// When what is shown is asked for again: at once, and when what an action only begins (removing files, closing connections) is done.
const AGAIN_MILLISECONDS = [0, 700, 2500];

// A button that is only there for those who may.
//   name, body: the action of the API, and its body from the values of the fields
//   perform: (body) -> answer, where it takes several requests
//   label: of the button; confirm: of the one that does it; title, explain: texts or vnodes, or functions of the values
//   fields: [{name, label, type: "text" | "number" | "choice" | "check", value, options: [[value, text]], help, when}]
//   done: (answer, values) -> sentence of the result; after: called then
export function ActionButton({ label, kind = "", ...asked }) {
  if (!may(asked.role ?? "administer")) return null;
  return html`<button type="button" class=${`${kind} ${asked.danger ? "danger" : ""}`} onClick=${() => offer({ label, ...asked })}>${label}</button>`;
}

export function offer(asked) {
  openDialog(ActionDialog, asked);
}

const value = (of, values) => (typeof of === "function" ? of(values) : of);

function ActionDialog({ name, perform = (given) => act(name, given), body = {}, title, explain, fields = [], label, confirm: verb = label, danger = false, done, after, close }) {
  const [values, setValues] = useState(() => Object.fromEntries(fields.map((field) => [field.name, field.value ?? ""])));
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  async function confirm(event) {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setFault(null);
    try {
      const answer = await perform(value(body, values));
      const sentence = done ? done(answer, values) : "Done.";
      const [text, kind] = Array.isArray(sentence) ? sentence : [sentence, answer && answer.why ? "warn" : "good"];
      close();
      toast(text, kind);
      if (after) for (const wait of AGAIN_MILLISECONDS) setTimeout(() => after(answer, values), wait);
    } catch (error) {
      setFault(error.message);
      setBusy(false);
    }
  }
  const set = (key, next) => setValues((was) => ({ ...was, [key]: next }));
  return html`<form onSubmit=${confirm}>
    <h2 id="dialog-title">${value(title, values)}</h2>
    ${fields.filter((field) => !field.when || field.when(values)).map((field) => html`<${Field} key=${field.name} field=${field} value=${values[field.name]} set=${set}/>`)}
    <div class="explain">${value(explain, values)}</div>
    ${fault && html`<p class="fault" role="alert">${fault}</p>`}
    <div class="buttons">
      <button type="button" onClick=${close} autofocus=${danger && !fields.length}>Cancel</button>
      <button type="submit" class=${danger ? "danger full" : "main"} disabled=${busy} autofocus=${!danger && !fields.length}>${busy ? "Working …" : value(verb, values)}</button>
    </div>
  </form>`;
}

function Field({ field, value: now, set }) {
  const id = `field-${field.name}`;
  const help = field.help && html`<small>${field.help}</small>`;
  if (field.type === "choice") {
    return html`<fieldset class="choice"><legend>${field.label}</legend>
      ${field.options.map(([option, text], index) => html`<label key=${option}>
        <input type="radio" name=${field.name} value=${option} checked=${now === option} autofocus=${now === option && !field.quiet}
          onChange=${() => set(field.name, option)}/> <span>${text}</span></label>`)}
      ${help}</fieldset>`;
  }
  if (field.type === "check") {
    return html`<label class="check"><input type="checkbox" checked=${Boolean(now)} onChange=${(event) => set(field.name, event.target.checked)}/> <span>${field.label}</span></label>`;
  }
  return html`<label class="field" for=${id}><span>${field.label}</span>
    <input id=${id} type=${field.type ?? "text"} value=${now} min=${field.min} max=${field.max} step=${field.step} required=${field.required !== false}
      placeholder=${field.placeholder} autofocus=${field.first} autocomplete="off" spellcheck=${false} onInput=${(event) => set(field.name, event.target.value)}/>
    ${help}</label>`;
}
