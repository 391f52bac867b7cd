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
  const clients = [], due = [], given = [];
  const session = new MqttSession((...what) => { given.push(what); clients.push(new Client()); return clients.at(-1); }, (act) => due.push(act));
  session.connect({ address: "ws://here/mqtt", secret: "s3", version, clientId: "page-1" });
  clients[0].emit("connect");
  return { session, client: clients[0], clients, given, show: () => due.splice(0).forEach((act) => act()) };
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
  const { session, client } = made();
  session.subscribe({ filter: "live" });
  session.subscribe({ filter: "old", from: "earliest" });
  client.asked.length = 0;
  client.emit("close");
  assert.equal(session.state.get().kind, "lost");
  client.emit("connect");
  assert.deepEqual(client.asked.map(([what, filter]) => [what, filter]), [["subscribe", "live"]]);
  assert.equal(session.subscriptions.get()[1].state, "ended");
});

test("a CONNACK with a fault is not tried again and again", () => {
  const { session, client } = made();
  client.emit("error", Object.assign(new Error("Connection refused: Not authorized"), { code: 135 }));
  assert.equal(client.ended, true);
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
