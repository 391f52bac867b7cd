// One MQTT.js client through a whole story; prints what it saw as a line of JSON. node story.mjs PORT TOPIC VERSION
import mqtt from "mqtt";

const [port, topic, version] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const lasting = version === 5 ? { clean: false, properties: { sessionExpiryInterval: 300 } } : { clean: false };
const dial = (clientId, options = {}) =>
  mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, { clientId, protocolVersion: version, reconnectPeriod: 0, ...options });
const collect = (client, count) =>
  new Promise((resolve, reject) => {
    const got = [];
    const timer = setTimeout(() => reject(new Error(`only ${got.length} of ${count}: ${got}`)), 10000);
    client.on("message", (name, payload) => {
      got.push(payload.toString());
      if (got.length === count) { clearTimeout(timer); resolve(got); }
    });
  });

const seen = {};
const publisher = await dial(`${topic}-p`);

const subscriber = await dial(`${topic}-s`);
seen.qos = {};
for (const qos of [0, 1, 2]) {
  await subscriber.subscribeAsync(`${topic}/${qos}`, { qos });
  const wait = collect(subscriber, 20);
  for (let n = 0; n < 20; n++) publisher.publish(`${topic}/${qos}`, String(n), { qos });
  seen.qos[qos] = await wait;
  subscriber.removeAllListeners("message");
}
await subscriber.endAsync();

const first = await dial(`${topic}-l`, lasting);
await first.subscribeAsync(`${topic}/away`, { qos: 1 });
await first.endAsync();
for (let n = 0; n < 10; n++) await publisher.publishAsync(`${topic}/away`, String(n), { qos: 1 });
const again = mqtt.connect(`mqtt://127.0.0.1:${port}`, { clientId: `${topic}-l`, protocolVersion: version, reconnectPeriod: 0, ...lasting });
seen.away = await collect(again, 10);
await again.endAsync();

const watcher = await dial(`${topic}-w`);
await watcher.subscribeAsync(`${topic}/will`, { qos: 1 });
const gone = collect(watcher, 1);
const dying = await dial(`${topic}-d`, { will: { topic: `${topic}/will`, payload: Buffer.from("gone"), qos: 1 } });
dying.stream.destroy();
seen.will = await gone;
await watcher.endAsync();

const late = await dial(`${topic}-e`);
const replay = collect(late, 11);
await late.subscribeAsync(`$log/earliest/${topic}/away`, { qos: 1 });
await publisher.publishAsync(`${topic}/away`, "live", { qos: 1 });
seen.replay = await replay;
await late.endAsync();
await publisher.endAsync();
console.log(JSON.stringify(seen));
