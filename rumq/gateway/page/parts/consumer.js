// Why a consumer is behind, in a line, from its row of `clients`; and the reasons of messages that were not delivered.
import { count, duration, plural, rate } from "./format.js";

// {kind, tag, line}: kind is the colour ("bad": it does nothing, "warn": it is slow, "": no fault), tag two words
export function reasonOf(row) {
  const behind = row.behind_records;
  const waiting = `${plural(behind, "record")} ${behind === 1 ? "waits" : "wait"} for it`;
  if (!row.connected || row.held_by === "connection") {
    return { kind: behind ? "warn" : "", tag: "away", line: behind ? `It is not connected; ${waiting} in the log.` : "It is not connected, and has missed nothing yet." };
  }
  if (row.held_by === "quota") {
    return { kind: "warn", tag: "over quota", line: "It sent more than its quota allows, so it is not read for now: nor are its acknowledgements." };
  }
  if (row.held_by === "socket") {
    return { kind: "bad", tag: "not reading", line: "It does not read its connection: its socket is full." };
  }
  if (row.held_by === "acknowledgements") {
    const all = row.in_flight_max ? `all ${count(row.in_flight_max)}` : count(row.in_flight);
    const slow = row.delivered_per_second > 0 ? `It acknowledges slowly (${rate(row.delivered_per_second)})` : "It does not acknowledge";
    return { kind: row.delivered_per_second > 0 ? "warn" : "bad", tag: "in flight full", line: `${slow}: ${all} messages are in flight.` };
  }
  if (row.held_by === "replay_quota") {
    return { kind: "", tag: "replay limited", line: "Its replay is as fast as its quota allows." };
  }
  if (!behind) return { kind: "good", tag: "connected", line: "It has read everything that it is to get." };
  if (row.delivered_per_second > 0) {
    return { kind: "", tag: "catching up", line: `It is sent ${rate(row.delivered_per_second)}; at that rate ${plural(behind, "record")} take ${duration(behind / row.delivered_per_second)}.` };
  }
  return { kind: "", tag: "reading", line: "Nothing holds it; the log is being read for it." };
}

// docs/guarantees.md, "Where messages are lost".
export const LOSS = {
  expired: "its expiry interval was over before the client could be sent it",
  over_limit: "larger than the client's maximum packet size",
  retention: "retention removed it before the client had read it",
  backlog_records_max: "the session was further behind than mqtt.backlog_records_max allows",
  damaged: "the record is damaged on disk",
  no_permission: "the client's rules do not allow it",
};
