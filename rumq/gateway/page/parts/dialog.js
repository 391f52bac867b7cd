// Dialogs and short messages: `openDialog(Component, props)`, `toast(sentence, kind)`; `<${Layer}/>` shows them.
import { html, useEffect, useRef } from "./dom.js";
import { Icon } from "./icons.js";
import { store, useStore } from "./store.js";

const shown = store(null); // {view, props}
const toasts = store([]);
const SECONDS = 6;
let number = 0;

// view: a component that gets `close` besides its props; it is drawn inside of a modal <dialog>
export function openDialog(view, props = {}) {
  shown.set({ view, props });
}

export const closeDialog = () => shown.set(null);

// kind: "good", "warn" or "bad", the last stays until it is closed
export function toast(sentence, kind = "good") {
  const entry = { sentence, kind, id: (number += 1) };
  toasts.set([...toasts.get().slice(-3), entry]);
  if (kind !== "bad") setTimeout(() => dismiss(entry), SECONDS * 1000);
}

const dismiss = (entry) => toasts.set(toasts.get().filter((each) => each !== entry));

function Modal({ view: View, props }) {
  const element = useRef(null);
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog.showModal();
    const wanted = dialog.querySelector("[autofocus]");
    if (wanted) wanted.focus();
    return () => {
      dialog.close();
      if (before && before.isConnected) before.focus();
    };
  }, []);
  const close = () => closeDialog();
  function cancelled(event) {
    event.preventDefault();
    close();
  }
  return html`<dialog ref=${element} class=${props.wide ? "wide" : ""} aria-labelledby="dialog-title" onCancel=${cancelled}
      onClick=${(event) => event.target === element.current && close()}>
    <div class="dialog"><${View} ...${props} close=${close}/></div>
  </dialog>`;
}

export function Layer() {
  const dialog = useStore(shown);
  const list = useStore(toasts);
  return html`
    ${dialog && html`<${Modal} key=${dialog} ...${dialog}/>`}
    <div class="toasts" role="status" aria-live="polite">
      ${list.map((entry) => html`<div key=${entry.id} class="toast ${entry.kind}">
        <span>${entry.sentence}</span>
        <button class="plain" aria-label="Close" onClick=${() => dismiss(entry)}><${Icon} name="close"/></button>
      </div>`)}
    </div>`;
}
