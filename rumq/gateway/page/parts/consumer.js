// Why a consumer is behind, in a line, from its row of `clients`, with what helps; and the reasons of messages that were
// not delivered, likewise.
import { count, duration, plural, rate } from "./format.js";

// `behind_records` counts the whole log: of these the client gets what its filters match, once `waiting` has counted them.
// counted: of `waiting`, null while it is not known
export function waitingFor(behind, counted) {
  if (counted && counted.messages === counted.at_most) return `${plural(counted.messages, "message")} ${counted.messages === 1 ? "waits" : "wait"} for it`;
  if (counted) return `${count(counted.messages)} to ${plural(counted.at_most, "message")} wait for it`;
  return `at most ${plural(behind, "message")} ${behind === 1 ? "waits" : "wait"} for it`;
}

const BACK = "Find out why it does not come back; what waits is kept as long as the log. If it never will, drop its session.";
const REMEDIES = {
  away: BACK,
  "over quota": "Have it publish less, or raise its quota (listener.client_messages_per_second_max and the like).",
  "not reading": "Look at the client and the network: it has stopped to read. Disconnected, it may begin anew.",
  "in flight full": "Look at the client's handler: it hangs, or is slow. A larger Receive Maximum of the client helps a slow network; a reset skips what waits.",
  "replay limited": "Wait, or raise its quota for replays in the settings of its listener or user.",
  "catching up": "Wait; a reset skips what waits.",
  reading: "Wait.",
};

// {kind, tag, line, remedy}: kind is the colour ("bad": it does nothing, "warn": it is slow, "": no fault), tag two words,
// remedy a sentence, "" where nothing is wrong
export function reasonOf(row, counted = null) {
  const found = judged(row, counted);
  return { ...found, remedy: row.behind_records ? (REMEDIES[found.tag] ?? "") : "" };
}

function judged(row, counted) {
  const behind = row.behind_records;
  const waiting = waitingFor(behind, counted);
  if (!row.connected || row.held_by === "connection") {
    return { kind: behind ? "warn" : "", tag: "away", line: behind ? `It is not connected; ${waiting} in the log.` : "It is not connected, and has missed nothing yet." };
  }
  if (row.held_by === "quota") {
    return { kind: "warn", tag: "over quota", line: "It sent more than its quota allows, so it is not read for now: nor are its acknowledgements." };
  }
  if (row.held_by === "socket") {
    return { kind: "bad", tag: "not reading", line: `It does not read its connection: its socket is full${behind ? `, and ${waiting}` : ""}.` };
  }
  if (row.held_by === "acknowledgements") {
    const all = row.in_flight_max ? `all ${count(row.in_flight_max)}` : count(row.in_flight);
    const slow = row.delivered_per_second > 0 ? `It acknowledges slowly (${rate(row.delivered_per_second)})` : "It does not acknowledge";
    return { kind: row.delivered_per_second > 0 ? "warn" : "bad", tag: "in flight full", line: `${slow}: ${all} messages are in flight${behind ? `, and ${waiting}` : ""}.` };
  }
  if (row.held_by === "replay_quota") {
    return { kind: "", tag: "replay limited", line: `Its replay is as fast as its quota allows${behind ? `; ${waiting}` : ""}.` };
  }
  if (!behind) return { kind: "good", tag: "connected", line: "It has read everything that it is to get." };
  if (row.delivered_per_second > 0) {
    const left = counted ? counted.at_most : behind;
    return { kind: "", tag: "catching up", line: `It is sent ${rate(row.delivered_per_second)}, and ${waiting}: at that rate ${counted && counted.messages === left ? "" : "at most "}${duration(left / row.delivered_per_second)}.` };
  }
  return { kind: "", tag: "reading", line: `Nothing holds it: the log is being read for it, and ${waiting}.` };
}

// docs/explanation/guarantees.md, "Where messages are lost": [what happened, what helps]
export const LOSS = {
  expired: ["its expiry interval was over before the client could be sent it", "Longer expiry intervals of the publisher, or a faster consumer."],
  over_limit: ["larger than the client's maximum packet size", "A larger Maximum Packet Size of the client, or smaller messages."],
  retention: ["retention removed it before the client had read it", "Keep records longer: retention of the stream (log.retention_bytes_max, log.retention_seconds_max), or more disk."],
  backlog_records_max: ["the session was further behind than mqtt.backlog_records_max allows", "Raise mqtt.backlog_records_max, or find out why the client is slow."],
  damaged: ["the record is damaged on disk", "Look at the disk and restore the segment: rumqd log verify, docs/guides/backup-and-restore.md."],
  no_permission: ["the client's rules do not allow it", "Allow it in the rules file, or have the client subscribe to what it may read."],
};
