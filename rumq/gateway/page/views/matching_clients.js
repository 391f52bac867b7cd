// One action for all clients that a search matches: disconnect, or drop their sessions.
import { ActionButton } from "../parts/action.js";
import { act, get } from "../parts/api.js";
import { html } from "../parts/dom.js";
import { allRows, eachOf, MANY_MAX } from "../parts/each_of.js";
import { count, plural } from "../parts/format.js";
import { visible } from "../parts/name.js";

const ACTIONS = [["disconnect", "Disconnect those that are connected; their sessions stay"], ["drop", "Drop their sessions: subscriptions, and what waits for them"]];

// asked: {client: a pattern, user} of the search; total: sessions that match now
export function MatchingButton({ asked, total, after }) {
  async function perform({ action }) {
    const find = (offset, limit) => get("clients", { ...asked, sort: "client", offset, limit }).then((found) => ({ rows: found.clients, leftOut: found.left_out }));
    const { rows, leftOut } = await allRows(find);
    const wanted = rows.filter((row) => action === "drop" || row.connected);
    return { ...(await eachOf([...new Set(wanted.map((row) => row.client_id))], (client) => act(action, { client }))), leftOut };
  }
  const whom = [asked.client && html`client id <b><bdi dir="ltr">${visible(asked.client)}</bdi></b>`, asked.user && html`user <b><bdi dir="ltr">${visible(asked.user)}</bdi></b>`].filter(Boolean);
  return html`<${ActionButton} label="All that match …" name="matching" danger perform=${perform} after=${after} title=${`What to do with ${plural(total, "session")}?`}
    fields=${[{ name: "action", label: "Do", type: "choice", value: "disconnect", options: ACTIONS }]}
    body=${({ action }) => ({ action })} confirm=${({ action }) => (action === "drop" ? `Drop ${plural(total, "session")}` : "Disconnect them")}
    explain=${({ action }) => html`<p><b>${plural(total, "session")}</b> match now: ${whom[0]}${whom[1] && html` and ${whom[1]}`}. Those that match when it is done are meant, ${count(MANY_MAX)} at a time; of a client id that several users have all sessions.</p>
      ${action === "drop" ? html`<p><b>Their sessions are deleted</b>: subscriptions, places in the log, what is in flight. This cannot be undone. Messages stay in the log.</p>` : html`<p>Their connections are closed (0x98). Most clients connect again at once: ban them to keep them away.</p>`}`}
    done=${({ done, failed, why, leftOut }, { action }) => {
      const text = `${plural(done, "client")} ${action === "drop" ? "dropped" : "disconnected"}.`;
      if (failed) return [`${text} ${count(failed)} failed: ${why}`, "warn"];
      return leftOut ? [`${text} ${count(leftOut)} more match: do it again.`, "warn"] : text;
    }}/>`;
}
