// The MQTT client of the page on a connection of the test: what it asks for, what it keeps, what it says of refusals.

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { MESSAGES_BYTES_MAX, MESSAGES_MAX, MqttSession, filtered } from "../../rumq/gateway/page/parts/mqtt_session.js";
import { addressOf, quoted, spark } from "../../rumq/gateway/page/parts/replay_words.js";

class Client extends EventEmitter {
  constructor() {
    super();
    this.asked = [];
    this.ended = false;
  }
  subscribe(...given) { this.asked.push(["subscribe", ...given]); }
  unsubscribe(...given) { this.asked.push(["unsubscribe", ...given]); }
  publish(...given) { this.asked.push(["publish", ...given]); }
  end() { this.ended = true; }
  message(topic, payload, packet = {}) { this.emit("message", topic, Buffer.from(payload), { qos: 0, retain: false, ...packet }); }
}

function made(version = 5) {
  const clients = [], due = [], given = [], waits = [];
  const clock = { time: 0, now: () => clock.time, later: (act) => due.push(act), wait: (milliseconds, act) => waits.push({ milliseconds, act }), cancel: () => {} };
  const session = new MqttSession((...what) => { given.push(what); clients.push(new Client()); return clients.at(-1); }, clock);
  session.connect({ address: "ws://here/mqtt", secret: "s3", version, clientId: "page-1" });
  clients[0].emit("connect", {});
  return { session, client: clients[0], clients, given, clock, waits, show: () => due.splice(0).forEach((act) => act()) };
}

test("the token is the password, and nothing is resubscribed behind our back", () => {
  const { given, session } = made();
  const [address, options] = given[0];
  assert.equal(address, "ws://here/mqtt");
  assert.equal(options.password, "s3");
  assert.equal(options.resubscribe, false);
  assert.equal(options.timerVariant, "native", "a worker of a blob is against the policy");
  assert.equal(session.state.get().kind, "connected");
});

test("a replay is a user property of MQTT 5, and a filter of 3.1.1", () => {
  const five = made(5);
  five.session.subscribe({ filter: "plant/#", from: "-1h", qos: 1 });
  const [, filter, options] = five.client.asked[0];
  assert.equal(filter, "plant/#");
  assert.deepEqual(options.properties.userProperties, { "rumq-from": "-1h" });
  assert.equal(options.qos, 1);
  const four = made(4);
  four.session.subscribe({ filter: "plant/#", from: "-1h", qos: 1 });
  assert.equal(four.client.asked[0][1], "$log/-1h/plant/#");
  assert.equal(four.client.asked[0][2].properties, undefined);
});

test("a refused subscription says why", () => {
  const { session, client } = made();
  session.subscribe({ filter: "secret/#" });
  client.asked[0][3](null, [{ topic: "secret/#", qos: 135 }], { granted: [135], properties: { reasonString: "no rule allows it" } });
  assert.deepEqual([session.subscriptions.get()[0].state, session.subscriptions.get()[0].why], ["refused", "no rule allows it"]);
  session.subscribe({ filter: "other/#" });
  client.asked[1][3](null, [{ topic: "other/#", qos: 143 }], { granted: [143] });
  assert.equal(session.subscriptions.get()[1].why, "the topic filter is not valid (0x8F)");
});

test("after a new connection live subscriptions go on, and replays have ended", () => {
  const { session, client, clients, waits } = made();
  session.subscribe({ filter: "live" });
  session.subscribe({ filter: "old", from: "earliest" });
  client.emit("close");
  assert.equal(session.state.get().kind, "lost");
  waits.pop().act();
  clients[1].emit("connect", {});
  assert.deepEqual(clients[1].asked.map(([what, filter]) => [what, filter]), [["subscribe", "live"]]);
  assert.equal(session.subscriptions.get()[1].state, "ended");
});

test("a lost connection is opened again, later and later, and soon again after a sound one", () => {
  const { session, client, clients, waits, clock } = made();
  client.emit("disconnect", { reasonCode: 144, properties: { reasonString: "the topic 'a/#' has a wildcard" } });
  client.emit("close");
  assert.deepEqual(session.state.get(), { kind: "lost", why: "the topic 'a/#' has a wildcard", retry: 1000 });
  const waited = [];
  for (let n = 0; n < 7; n++) {
    const { milliseconds, act } = waits.pop();
    waited.push(milliseconds);
    act();
    assert.equal(session.state.get().kind, "connecting");
    clients.at(-1).emit("close");
  }
  assert.deepEqual(waited, [1000, 2000, 4000, 8000, 16000, 30000, 30000]);
  assert.deepEqual(session.losses.get().map(({ why, isBack }) => [why, isBack]), [["the topic 'a/#' has a wildcard", false]], "attempts are no losses");
  waits.pop().act();
  clients.at(-1).emit("connect", {});
  assert.equal(session.losses.get()[0].isBack, true);
  clock.time += 10_000;
  clients.at(-1).emit("close");
  assert.equal(session.state.get().retry, 1000);
  session.retry();
  assert.equal(session.state.get().kind, "connecting");
});

test("a connection that breaks as soon as it is there is not tried faster and faster", () => {
  const { session, clients, waits } = made();
  for (let n = 0; n < 3; n++) {
    clients.at(-1).emit("close");
    waits.pop().act();
    clients.at(-1).emit("connect", {});
  }
  clients.at(-1).emit("close");
  assert.equal(session.state.get().retry, 8000);
});

test("what was published and not acknowledged is told to be uncertain, and never sent again", async () => {
  const { session, client, clients, waits } = made();
  const open = session.publish({ topic: "t", payload: "x", qos: 1 });
  client.emit("close");
  await assert.rejects(open, /before the broker acknowledged it: it may be published, or not/);
  waits.pop().act();
  clients[1].emit("connect", {});
  assert.deepEqual(clients[1].asked, []);
});

test("after it was disconnected by hand nothing is opened again", () => {
  const { session, client, clients } = made();
  session.disconnect();
  client.emit("close");
  session.retry();
  assert.equal(clients.length, 1);
  assert.equal(session.state.get().kind, "off");
});

test("what MQTT cannot carry is refused before it is sent", async () => {
  const { session, client } = made();
  const bad = [
    [{ topic: "plant/#" }, /no wildcards/], [{ topic: "" }, /empty/], [{ topic: "a\0b" }, /null character/], [{ topic: "t".repeat(65_536) }, /65,535 bytes/],
    [{ topic: "\ud800" }, /lone surrogate/], [{ topic: "ü".repeat(32_768) }, /65,536 bytes/],
    [{ topic: "t", properties: { responseTopic: "a/+" } }, /response topic may have no wildcards/],
    [{ topic: "t", properties: { messageExpiryInterval: 2 ** 32 } }, /4,294,967,295/],
    [{ topic: "t", properties: { messageExpiryInterval: 1.5 } }, /whole number/],
    [{ topic: "t", properties: { userProperties: { a: ["x", "y".repeat(65_536)] } } }, /user property a has 65,536 bytes/],
    [{ topic: "t", properties: { contentType: "\0" } }, /content type has a null/],
    [{ topic: "t", properties: { correlationData: "x".repeat(65_536) } }, /correlation data/],
  ];
  for (const [given, said] of bad) await assert.rejects(session.publish({ payload: "x", qos: 1, ...given }), said);
  for (const [filter, said] of [["a/#/b", /# is the last level/], ["a/b#", /# is a level of its own/], ["a+", /\+ is a level/], ["", /empty/], ["$share/g", /\$share\/NAME/], ["$share/+/a", /\$share\/NAME/], ["a\0", /null/]]) {
    assert.match(session.subscribe({ filter }), said);
  }
  for (const filter of ["#", "+", "a/+/#", "$share/g/a/#", "/", "$log/-1h/a"]) assert.equal(session.subscribe({ filter }), "");
  assert.equal(client.asked.filter(([what]) => what === "publish").length, 0);
  assert.equal(client.asked.length, 6);
});

test("a start with a plus is for MQTT 5", () => {
  const from = "2026-11-20T06:00:00+02:00";
  assert.equal(made(5).session.subscribe({ filter: "a", from }), "");
  assert.match(made(4).session.subscribe({ filter: "a", from }), /MQTT 3.1.1 has the start in the filter/);
});

test("a message larger than the broker takes is refused here", async () => {
  const { session, client } = made();
  client.emit("connect", { properties: { maximumPacketSize: 1000 } });
  await assert.rejects(session.publish({ topic: "t", payload: new Uint8Array(1000) }), /1,001 bytes; this broker takes 1,000/);
});

test("a replayed message tells the time of its record, a live one does not, whatever its publisher says", () => {
  const { session, client, show } = made();
  session.subscribe({ filter: "live/#" });
  session.subscribe({ filter: "old/#", from: "earliest" });
  const [live, old] = session.subscriptions.get().map(({ id }) => id);
  const told = { userProperties: { "rumq-time": ["2001-01-01T00:00:00Z", "2026-11-20T06:00:00.5Z"] } };
  client.message("live/1", "x", { properties: { ...told, subscriptionIdentifier: live } });
  client.message("old/1", "x", { properties: { ...told, subscriptionIdentifier: old } });
  show();
  assert.deepEqual(session.messages.get().map((each) => each.recordedAt), [null, Date.UTC(2026, 10, 20, 6, 0, 0, 500) * 1000]);
});

test("a CONNACK that another attempt may not get is tried again", () => {
  const { session, client, clients, waits } = made();
  client.emit("close");
  waits.pop().act();
  clients[1].emit("error", Object.assign(new Error("Connection refused: Server unavailable"), { code: 136 }));
  clients[1].emit("close");
  assert.equal(session.state.get().kind, "lost");
  assert.match(session.state.get().why, /not available/);
});

test("a CONNACK with a fault is not tried again and again", () => {
  const { session, clients, waits } = made();
  clients[0].emit("close");
  waits.pop().act();
  const client = clients[1];
  client.emit("error", Object.assign(new Error("Connection refused: Not authorized"), { code: 135 }));
  client.emit("close");
  assert.equal(client.ended, true);
  assert.equal(waits.length, 0);
  assert.deepEqual(session.state.get(), { kind: "off", why: "this token may not do that (0x87)" });
});

test("the list of messages is bounded in number and in bytes, and drawn at times", () => {
  const { session, client, show } = made();
  for (let n = 0; n < MESSAGES_MAX + 5; n++) client.message("t", `${n}`);
  assert.equal(session.messages.get().length, 0);
  show();
  assert.equal(session.messages.get().length, MESSAGES_MAX);
  assert.deepEqual(session.counts.get(), { received: MESSAGES_MAX + 5, dropped: 5 });
  assert.equal(filtered(session.messages.get(), "1004").length, 1);
  for (let n = 0; n < 20; n++) client.message("big", Buffer.alloc(MESSAGES_BYTES_MAX / 8));
  show();
  assert.ok(session.messages.get().length <= 8);
  session.clear();
  assert.equal(session.messages.get().length, 0);
});

test("a publish that is refused fails with a sentence", async () => {
  const { session, client } = made();
  const refused = session.publish({ topic: "t", payload: "x", qos: 1 });
  client.asked[0][4](Object.assign(new Error("Publish error: Not authorized"), { code: 135 }), { reasonCode: 135 });
  await assert.rejects(refused, /this token may not do that \(0x87\)/);
  const lonely = session.publish({ topic: "t", payload: "x", qos: 1 });
  client.asked[1][4](undefined, { reasonCode: 16 });
  assert.match(await lonely, /no subscriber/);
  session.disconnect();
  await assert.rejects(session.publish({ topic: "t", payload: "x" }), /not connected/);
});

test("words of a shell and of Python carry any topic", () => {
  assert.equal(quoted("plant/7"), "plant/7");
  assert.equal(quoted("a b; rm -rf /"), "'a b; rm -rf /'");
  assert.equal(quoted("it's"), "'it'\\''s'");
  assert.equal(quoted("a\n'\\b"), "$'a\\x0a\\x27\\x5cb'".replace("\\x27", "\\'").replace("\\x5c", "\\\\"));
  assert.ok(spark('a"b\u202e', "7").includes('"a\\"b\\u202e"'));
  assert.ok(spark("t", "-1h").includes('.option("start", "-1h")'));
});

test("the broker's address is that of its first listener", () => {
  assert.deepEqual(addressOf("10.0.0.1:1884", "here"), ["10.0.0.1", "1884"]);
  assert.deepEqual(addressOf("0.0.0.0:1883", "here"), ["here", "1883"]);
  assert.deepEqual(addressOf("[::]:1883", "here"), ["here", "1883"]);
  assert.deepEqual(addressOf("127.0.0.1:0", "here"), ["127.0.0.1", "1883"]);
  assert.deepEqual(addressOf("/run/rumq.sock", "here"), ["here", "1883"]);
});
