// One MQTT.js client through a whole story; prints what it saw as a line of JSON.
// node story.mjs HOST PORT TOPIC VERSION REPLAY [PROTOCOL], where VERSION is 4 or 5, REPLAY is "replay" or "plain", and
// PROTOCOL is mqtt, mqtts, ws or wss [mqtt]; NODE_EXTRA_CA_CERTS names the authority
import mqtt from "mqtt";

const [host, port, topic] = process.argv.slice(2, 5);
const version = Number(process.argv[5]);
const replaying = process.argv[6] === "replay";
const protocol = process.argv[7] ?? "mqtt";
const MS_MAX = 10000;

const where = { host, port: Number(port), protocol, ...(protocol.startsWith("ws") && { path: "/mqtt" }) };
const dial = (clientId, options = {}) =>
  mqtt.connect({ ...where, clientId, protocolVersion: version, reconnectPeriod: 0, ...options });
const connected = async (clientId, options) => {
  const client = dial(clientId, options);
  await new Promise((resolve, reject) => client.once("connect", resolve).once("error", reject));
  return client;
};
const lasting = { clean: false, ...(version === 5 && { properties: { sessionExpiryInterval: 300 } }) };

// Listens from now on: the messages that come next, as far as `count`.
const next = (client, count) =>
  new Promise((resolve, reject) => {
    const got = [];
    const timer = setTimeout(() => reject(new Error(`only ${got.length} of ${count}`)), MS_MAX);
    const take = (name, payload, packet) => {
      got.push({ name, payload: payload.toString(), retain: packet.retain, properties: packet.properties });
      if (got.length < count) return;
      clearTimeout(timer);
      client.removeListener("message", take);
      resolve(got);
    };
    client.on("message", take);
  });
const payloads = (messages) => messages.map((message) => message.payload);
const numbers = (count) => Array.from({ length: count }, (_, n) => String(n));

const seen = {};
const publisher = await connected(`${topic}-p`);
const publishAll = (name, qos, count) => Promise.all(numbers(count).map((n) => publisher.publishAsync(name, n, { qos })));

async function eachQos() {
  const client = await connected(`${topic}-s`);
  seen.qos = {};
  for (const qos of [0, 1, 2]) {
    await client.subscribeAsync(`${topic}/${qos}`, { qos });
    const wait = next(client, 20);
    await publishAll(`${topic}/${qos}`, qos, 20);
    seen.qos[qos] = payloads(await wait);
  }
  await client.endAsync();
}

async function away() {
  const first = await connected(`${topic}-l`, lasting);
  await first.subscribeAsync(`${topic}/away`, { qos: 1 });
  await first.endAsync();
  await publishAll(`${topic}/away`, 1, 10);
  const again = dial(`${topic}-l`, lasting);
  seen.away = payloads(await next(again, 10));
  await again.endAsync();
}

async function will() {
  const watcher = await connected(`${topic}-w`);
  await watcher.subscribeAsync(`${topic}/will`, { qos: 1 });
  const gone = next(watcher, 1);
  const last = { topic: `${topic}/will`, payload: Buffer.from("gone"), qos: 1, retain: false };
  const dying = await connected(`${topic}-d`, { will: last });
  dying.stream.destroy();
  seen.will = payloads(await gone);
  await watcher.endAsync();
}

async function retained() {
  await publisher.publishAsync(`${topic}/state`, "on", { qos: 1, retain: true });
  const client = await connected(`${topic}-r`);
  const greeted = next(client, 1);
  await client.subscribeAsync(`${topic}/state`, { qos: 1 });
  seen.retained = (await greeted).map(({ payload, retain }) => [payload, retain]);
  await client.endAsync();
}

async function properties() {
  // The library replaces topics by aliases on its way out, and understands the broker's.
  const client = await connected(`${topic}-m`, { properties: { topicAliasMaximum: 5 }, autoAssignTopicAlias: true });
  await client.subscribeAsync(`${topic}/5/#`, { qos: 1, properties: { subscriptionIdentifier: 300 } });
  const wait = next(client, 6);
  for (const n of numbers(6)) {
    const properties = {
      userProperties: { a: ["1", "2"] }, responseTopic: "answers/here", correlationData: Buffer.from([0, 255]),
      contentType: "text/plain", messageExpiryInterval: 1000,
    };
    await client.publishAsync(`${topic}/5/${n % 2}`, n, { qos: 1, properties });
  }
  const got = await wait;
  seen.topics = got.map(({ name }) => name.slice(topic.length));
  seen.numbered = got.map(({ properties }) => properties.subscriptionIdentifier);
  const { userProperties, responseTopic, correlationData, contentType, messageExpiryInterval } = got[5].properties;
  seen.properties = { userProperties, responseTopic, contentType, correlationData: [...correlationData] };
  seen.expiry = messageExpiryInterval;
  seen.aliases = got.filter(({ properties }) => properties.topicAlias).length;
  await client.endAsync();
}

async function replay() {
  const late = await connected(`${topic}-e`);
  const everything = next(late, 11);
  await late.subscribeAsync(`$log/earliest/${topic}/away`, { qos: 1 });
  await publisher.publishAsync(`${topic}/away`, "live", { qos: 1 });
  seen.replay = payloads(await everything);
  await late.endAsync();
  const refused = await connected(`${topic}-f`);
  seen.refused = await refused.subscribeAsync(`$log/never/${topic}`, { qos: 1 }).catch((error) => error.message);
  await refused.endAsync();
  if (version !== 5) return;
  const asking = await connected(`${topic}-u`);
  const some = next(asking, 3);
  await asking.subscribeAsync(`${topic}/away`, { qos: 1, properties: { userProperties: { "rumq-from": "8" } } });
  seen.places = (await some).map(({ payload, properties }) => [payload, properties.userProperties]);
  await asking.endAsync();
}

const chapters = [eachQos, away, will, retained, ...(version === 5 ? [properties] : []), ...(replaying ? [replay] : [])];
for (const chapter of chapters) await chapter();
await publisher.endAsync();
console.log(JSON.stringify(seen));
