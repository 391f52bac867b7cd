// Says that the rules keep topics from this token: an empty or short list is then no sign that there is nothing.
import { html } from "./dom.js";
import { may, me } from "./session.js";
import { useStore } from "./store.js";

// payloads: of a view that shows them; names alone are told to whoever may administer
export function Restricted({ payloads = false }) {
  const who = useStore(me);
  if (!who || !who.reads || who.reads === "all" || (!payloads && may("administer"))) return null;
  return html`<p class="notice" role="status">The rules let this token's user read ${who.reads === "none" ? "none" : "some"} of the topics: the others are left out here.</p>`;
}
