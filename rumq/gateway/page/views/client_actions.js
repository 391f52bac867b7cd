// What an operator can do to one session: reset its place, trace, disconnect, ban, drop. Each says what will happen.
import { ActionButton } from "../parts/action.js";
import { html } from "../parts/dom.js";
import { count, plural } from "../parts/format.js";
import { visible } from "../parts/name.js";

export const BAN_TIMES = [["600", "10 minutes"], ["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"]];
export const TRACE_TIMES = [["60", "1 minute"], ["300", "5 minutes"], ["1800", "30 minutes"], ["3600", "1 hour"]];

const PLACES = [
  ["latest", "Now: only what comes from now on"],
  ["earliest", "The beginning: everything that the log still has"],
  ["ago", "A time ago"],
  ["time", "A point in time"],
  ["offset", "An offset of one topic"],
];

// The start as the broker takes it: docs/reference/replay.md.
export function startOf({ place, ago, unit, when, offset }) {
  if (place === "ago") return `-${Math.max(0, Math.round(Number(ago) || 0))}${unit || "h"}`;
  if (place === "time") return when ? new Date(when).toISOString().replace(/\.000Z$/, "Z") : "";
  if (place === "offset") return String(offset ?? "").trim();
  return place;
}

const UNITS = [["m", "minutes"], ["h", "hours"], ["d", "days"]];
const unitOf = (unit) => UNITS.find(([name]) => name === unit)?.[1] ?? "hours";

function resetEffect(values, filter, behind) {
  const whose = filter ? html`Its subscription <b><bdi dir="ltr">${visible(filter)}</bdi></b> starts` : html`All of its subscriptions start`;
  const effects = {
    latest: html`<p>${whose} again at the end of the log. ${behind ? html`<b>It is ${plural(behind, "record")} of the log behind: what it subscribes to of them will not be sent to it</b>. They stay in the log, and can be replayed later.` : "It misses nothing: it has read everything."}</p>`,
    earliest: html`<p>${whose} again at the oldest record that the log still has. <b>It gets messages again that it had already</b>, in order, then goes on live.</p>`,
    ago: html`<p>${whose} again ${count(Number(values.ago) || 0)} ${unitOf(values.unit)} ago. What it had since then <b>it gets again</b>; what is older and not read yet it does not get.</p>`,
    time: html`<p>${whose} again at that time, as this computer's clock shows it. What it had since then <b>it gets again</b>; what is older and not read yet it does not get.</p>`,
    offset: html`<p>${whose} again at this offset: the number of a message in its topic, from 0. This needs ${filter ? "a filter without wildcards" : "subscriptions without wildcards"}.</p>`,
  };
  return html`${effects[values.place]}
    <p>Messages in flight stay in flight. Shared groups have a place of their own, which this leaves alone. Other clients notice nothing.</p>`;
}

// filter: only this subscription
export function ResetButton({ client, filter = null, behind = 0, after, label = "Reset place …", kind = "" }) {
  return html`<${ActionButton} label=${label} kind=${kind} name="reset" confirm="Reset its place" title=${html`Where should <bdi dir="ltr">${visible(client)}</bdi> go on?`}
    fields=${[
      { name: "place", label: "Start again at", type: "choice", value: "latest", options: PLACES },
      { name: "ago", label: "How long ago", type: "number", min: 0, step: 1, value: "1", when: (values) => values.place === "ago" },
      { name: "unit", label: "Unit", type: "choice", value: "h", quiet: true, options: UNITS, when: (values) => values.place === "ago" },
      { name: "when", label: "Time (local)", type: "datetime-local", step: 1, value: "", when: (values) => values.place === "time" },
      { name: "offset", label: "Offset", type: "number", min: 0, step: 1, value: "0", when: (values) => values.place === "offset" },
    ]}
    body=${(values) => ({ client, start: startOf(values), ...(filter ? { filter } : {}) })}
    explain=${(values) => resetEffect(values, filter, behind)} after=${after}
    done=${(answer, values) => (answer.done ? `${plural(answer.done, "subscription")} ${answer.done === 1 ? "starts" : "start"} again at ${startOf(values)}.${answer.why ? ` Not all: ${answer.why}.` : ""}`
      : [`Nothing was reset: ${answer.why || "the session has no such subscription"}.`, "warn"])}/>`;
}

const ended = (answer) => (answer.disconnected || answer.dropped ? null : ["There was nothing to end: the client is gone already.", "warn"]);

export function DisconnectButton({ client, after, kind = "" }) {
  return html`<${ActionButton} label="Disconnect …" kind=${kind} name="disconnect" danger confirm="Disconnect" title=${html`Disconnect <bdi dir="ltr">${visible(client)}</bdi>?`} body=${{ client }} after=${after}
    explain=${html`<p>Its connection is closed (0x98, administrative action). <b>Its session stays</b>: what comes meanwhile waits for it in the log. Most clients connect again at once; ban it to keep it away.</p>`}
    done=${(answer) => ended(answer) ?? `Disconnected: ${plural(answer.disconnected, "connection")} closed.`}/>`;
}

export function ClientActions({ client, row, after }) {
  const name = html`<bdi dir="ltr">${visible(client)}</bdi>`;
  return html`<${ResetButton} client=${client} behind=${row.behind_records} after=${after}/>
    <${ActionButton} label="Trace …" name="trace" confirm="Trace" title=${html`Trace ${name}`} after=${after}
      fields=${[{ name: "seconds", label: "For", type: "choice", value: "60", options: TRACE_TIMES }]}
      body=${({ seconds }) => ({ kind: "client", name: client, seconds: Number(seconds) })}
      explain=${html`<p>Every packet that the client sends or is sent becomes an event, here and in the broker's log: its type, topic, QoS and size, <b>never its payload</b>. At most 100 a second; further ones are counted.</p>`}
      done=${() => "Its packets are shown below."}/>
    ${row.connected && html`<${DisconnectButton} client=${client} after=${after}/>`}
    <${ActionButton} label="Ban …" name="ban" danger confirm="Ban" title=${html`Ban ${name}?`} after=${after}
      fields=${[
        { name: "kind", label: "What is banned", type: "choice", value: "client", options: bannable(client, row).map(([kind, , text]) => [kind, text]) },
        { name: "seconds", label: "For", type: "choice", value: "600", quiet: true, options: BAN_TIMES },
      ]}
      body=${({ kind, seconds }) => ({ kind, name: bannable(client, row).find(([each]) => each === kind)[1], seconds: Number(seconds) })}
      explain=${html`<p>Whoever is named is disconnected now, and refused (0x8A) until the time is over or the ban is lifted, also after a restart. Sessions stay.</p>`}
      done=${(answer, { seconds }) => `Banned for ${BAN_TIMES.find(([each]) => each === seconds)[1]}.`}/>
    <${ActionButton} label="Drop session …" name="drop" danger confirm="Drop the session" title=${html`Drop the session of ${name}?`} body=${{ client }} after=${after}
      explain=${html`<p>Its connection is closed and <b>its session is deleted</b>: its subscriptions, its place in the log and what is in flight are forgotten. ${row.behind_records ? html`It is ${plural(row.behind_records, "record")} of the log behind: what it subscribes to of them it will not get. ` : ""}This cannot be undone. Messages stay in the log.</p>`}
      done=${(answer) => ended(answer) ?? `Dropped: ${plural(answer.dropped, "session")} deleted.`}/>`;
}

// [kind, name, text] of what a ban can name.
function bannable(client, row) {
  const address = row.address && row.address.replace(/:\d+$/, "");
  return [
    ["client", client, html`This client id`],
    row.user && ["user", row.user, html`Every client of user <bdi dir="ltr">${visible(row.user)}</bdi>`],
    address && ["address", address, html`Every client from address ${address}`],
  ].filter(Boolean);
}
