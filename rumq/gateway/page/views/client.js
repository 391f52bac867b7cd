// One session in detail, with what an operator can do about it.
import { get } from "../parts/api.js";
import { html, usePoll } from "../parts/dom.js";
import { Name, visibleLine } from "../parts/name.js";
import { Fault, Heading } from "../parts/view_place.js";

export const title = ({ id = "" }) => visibleLine(id);

export function view({ id = "" }) {
  const { data, error } = usePoll((signal) => get("client", { client: id }, signal), 3, [id]);
  return html`<${Heading} title=${html`<${Name} text=${id}/>`}/><${Fault} error=${error}/>
    ${data && !data.found && html`<p class="empty">There is no session with this client id.</p>`}`;
}
