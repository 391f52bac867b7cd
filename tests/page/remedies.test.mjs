// Every warning and error of docs/reference/events.md has its remedy, no other name has one, and figures of events are in human units.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

globalThis.location = { hash: "" };
globalThis.addEventListener = () => {};
const { known, remedyOf } = await import("../../rumq/gateway/page/parts/remedies.js");
const { figure } = await import("../../rumq/gateway/page/parts/format.js");
const { LOSS, reasonOf, waitingFor } = await import("../../rumq/gateway/page/parts/consumer.js");

const docs = (name) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8");
const events = [...docs("reference/events.md").matchAll(/^\| `([a-z_]+\.[a-z_]+)` \| (warning|error) \|/gm)].map(([, name]) => name);

test("every warning and error has its remedy, and nothing else has", () => {
  assert.ok(events.length > 80, `${events.length} events were found in docs/reference/events.md`);
  assert.deepEqual(known().sort(), [...events].sort());
  for (const event of events) assert.match(remedyOf({ event, fields: {} }).line, /^[A-Za-z].*[.]$/);
});

test("a remedy leads to whom the event is about", () => {
  assert.equal(remedyOf({ event: "consumer.lagging", fields: { client_id: "a&b" } }).href, "#/client?id=a%26b");
  assert.equal(remedyOf({ event: "log.full", fields: {} }).href, "#/streams");
  assert.equal(remedyOf({ event: "client.connected", fields: {} }), null);
});

test("figures of events are in the units of people", () => {
  assert.equal(figure("free_bytes", 10_737_418_240), "10.0 GiB");
  assert.equal(figure("bytes_per_second", 1_572_864), "1.50 MiB/s");
  assert.equal(figure("seconds", 4440), "1 h 14 min");
  assert.equal(figure("retry_seconds", 0.5), "500 ms");
  assert.equal(figure("records", 15_760), "15,760");
  assert.equal(figure("shard", 1), null, "a number that names is as it is");
  assert.equal(figure("free_wanted", 1024), "1.00 KiB");
  assert.equal(figure("why", "full"), null);
});

test("what waits is counted, or told as at most", () => {
  assert.equal(waitingFor(15_760, null), "at most 15,760 messages wait for it");
  assert.equal(waitingFor(15_760, { messages: 40, at_most: 40 }), "40 messages wait for it");
  assert.equal(waitingFor(15_760, { messages: 1, at_most: 1 }), "1 message waits for it");
  assert.equal(waitingFor(15_760, { messages: 40, at_most: 900 }), "40 to 900 messages wait for it");
});

test("every reason that holds a consumer has its remedy", () => {
  const row = { connected: true, behind_records: 9, in_flight: 5, in_flight_max: 5, delivered_per_second: 0, held_by: "" };
  const held = [{ held_by: "connection" }, { held_by: "quota" }, { held_by: "socket" }, { held_by: "acknowledgements" }, { held_by: "replay_quota" }, {}, { delivered_per_second: 3 }, { connected: false }];
  for (const more of held) assert.match(reasonOf({ ...row, ...more }).remedy, /[.]$/, JSON.stringify(more));
  assert.equal(reasonOf({ ...row, behind_records: 0 }).remedy, "");
  assert.match(reasonOf({ ...row, delivered_per_second: 3 }).line, /at most 9 messages wait for it: at that rate at most 3.00 s/);
});

test("every reason why messages are lost has its remedy", () => {
  const reasons = [...docs("explanation/guarantees.md").matchAll(/^\| `?(expired|over_limit|retention|backlog_records_max|damaged|no_permission)`? \|/gm)].map(([, name]) => name);
  for (const reason of new Set([...reasons, "expired", "over_limit", "retention", "backlog_records_max", "damaged", "no_permission"])) assert.match(LOSS[reason][1], /[.]$/);
});
