// The MQTT client of the page: one connection to `/mqtt`, its subscriptions, and a bounded list of what arrived.
import { faultOfFilter, faultOfProperties, faultOfSize, faultOfText, faultOfTopic } from "./mqtt_checks.js";
import { payloadLine } from "./payload.js";
import { store } from "./store.js";

export const MESSAGES_MAX = 1000;
export const MESSAGES_BYTES_MAX = 16 << 20;
const SHOW_MILLISECONDS = 100; // of many messages a second, each tenth of a second is drawn

const BACK_OFF_MILLISECONDS = [1000, 2000, 4000, 8000, 16_000, 30_000]; // before the first attempt, the second ... and any later one
const STEADY_MILLISECONDS = 10_000; // a connection that lasted so long was sound: the next loss begins with the shortest wait
// Reason codes of a CONNACK that another attempt may not get: unavailable, busy, a quota, too many connections.
const PASSING = [3, 136, 137, 151, 159];

const CLOCK = { now: () => performance.now(), later: (act) => setTimeout(act, SHOW_MILLISECONDS), wait: (milliseconds, act) => setTimeout(act, milliseconds), cancel: (timer) => clearTimeout(timer) };

// connect: mqtt.connect; clock: of a test
export class MqttSession {
  constructor(connect, clock = CLOCK) {
    this.connectClient = connect;
    this.clock = clock;
    this.state = store({ kind: "off", why: "" }); // kind: off, connecting, connected or lost; retry: of lost, milliseconds to the next attempt
    this.losses = store([]); // connections that were lost since `connect`, the newest last: {at, why, isBack}
    this.subscriptions = store([]); // {id, filter, from, qos, state: "asked" | "granted" | "refused" | "ended", why, count}
    this.messages = store([]); // the newest last: {id, topic, payload, qos, retain, properties, at, recordedAt, line}
    this.counts = store({ received: 0, dropped: 0 });
    this.client = this.wanted = this.timer = null;
    this.pending = new Set(); // refusals of publishes that are not acknowledged
    this.number = 0;
    this.clear();
  }

  // address: ws(s)://host/mqtt; version: 5 or 4 (3.1.1)
  connect({ address, secret, version = 5, clientId }) {
    this.disconnect();
    this.version = version;
    this.wanted = { address, secret, clientId };
    this.attempts = 0;
    this.losses.set([]);
    this.open();
  }

  // Each attempt has a client of its own: the library's own would send again what ended the connection before, for ever.
  open() {
    const { address, secret, clientId } = this.wanted;
    this.clock.cancel(this.timer);
    this.why = "";
    this.since = null;
    this.state.set({ kind: "connecting", why: this.attempts ? "again" : "" });
    const client = this.connectClient(address, {
      protocolVersion: this.version, clientId, username: "page", password: secret, clean: true, keepalive: 30,
      reconnectPeriod: 0, connectTimeout: 15000, resubscribe: false, timerVariant: "native",
      ...(this.version === 5 ? { properties: { sessionExpiryInterval: 0, receiveMaximum: 500 } } : {}),
    });
    this.client = client;
    const mine = (act) => (...given) => this.client === client && act(...given);
    client.on("connect", mine((packet) => this.connected(packet)));
    client.on("close", mine(() => this.lost()));
    client.on("error", mine((fault) => this.failed(fault)));
    client.on("disconnect", mine((packet) => { this.why = reasonOf(packet, "the broker ended the connection"); }));
    client.on("message", mine((topic, payload, packet) => this.arrived(topic, payload, packet)));
  }

  disconnect() {
    this.wanted = null;
    this.close("The console was disconnected");
    this.subscriptions.set([]);
    this.state.set({ kind: "off", why: "" });
  }

  // The connection and what waits for it end. why: a sentence without its end
  close(why) {
    const client = this.client;
    this.client = null;
    this.clock.cancel(this.timer);
    if (client) client.end(true);
    for (const refuse of [...this.pending]) refuse(new Error(`${why}, before the broker acknowledged it: it may be published, or not.`));
    this.pending.clear();
  }

  connected(packet) {
    this.since = this.clock.now();
    this.packetBytesMax = packet?.properties?.maximumPacketSize ?? 0;
    this.state.set({ kind: "connected", why: "" });
    this.losses.set(this.losses.get().map((each) => ({ ...each, isBack: true })));
    for (const each of this.subscriptions.get()) if (!each.from && each.state !== "refused") this.ask(each);
  }

  lost() {
    const why = this.why || (this.since === null ? "the gateway does not answer" : "the connection ended");
    if (this.since !== null) {
      if (this.clock.now() - this.since >= STEADY_MILLISECONDS) this.attempts = 0;
      this.losses.set([...this.losses.get().slice(-9), { at: Date.now(), why, isBack: false }]);
    }
    this.close("The connection ended");
    // A replay would begin again where it began: its messages would be here twice.
    for (const each of this.subscriptions.get()) if (each.from && each.state !== "refused") this.change(each.id, { state: "ended", why: "the connection ended" });
    const retry = BACK_OFF_MILLISECONDS[Math.min(this.attempts, BACK_OFF_MILLISECONDS.length - 1)];
    this.attempts += 1;
    this.state.set({ kind: "lost", why, retry });
    this.timer = this.clock.wait(retry, () => this.retry());
  }

  // The next attempt, now.
  retry() {
    if (this.wanted && this.state.get().kind === "lost") this.open();
  }

  // Most faults of a CONNACK come again at each attempt: there is no sense in more of them.
  failed(fault) {
    this.why = sentence(fault);
    if (typeof fault.code !== "number" || this.since !== null || PASSING.includes(fault.code)) return;
    this.wanted = null;
    this.close("The broker refused the connection");
    this.state.set({ kind: "off", why: this.why });
  }

  // from: empty, or where a replay starts (docs/reference/replay.md)
  // returns: why it cannot be asked for, a sentence, or ""
  subscribe({ filter, from = "", qos = 0 }) {
    const wrong = faultOfFilter(filter) || faultOfText("The start", from);
    if (wrong) return wrong;
    if (faultOfFilter(wire({ filter, from }, this.version))) return "MQTT 3.1.1 has the start in the filter, where + and # are wildcards: write it without them (a time in UTC), or use MQTT 5.";
    this.number += 1;
    const made = { id: this.number, filter, from, qos, state: "asked", why: "", count: 0 };
    const others = this.subscriptions.get().filter((each) => wire(each, this.version) !== wire(made, this.version));
    this.subscriptions.set([...others, made]);
    this.ask(made);
    return "";
  }

  ask(subscription) {
    const options = { qos: subscription.qos };
    if (this.version === 5) {
      options.properties = { subscriptionIdentifier: subscription.id };
      if (subscription.from) options.properties.userProperties = { "rumq-from": subscription.from };
    }
    this.client?.subscribe(wire(subscription, this.version), options, (fault, granted, packet) => {
      const code = packet?.granted?.[0] ?? granted?.[0]?.qos;
      if (code >= 128) this.change(subscription.id, { state: "refused", why: reasonOf(packet, refusal(code)) });
      else if (fault) this.change(subscription.id, { state: "refused", why: sentence(fault) });
      else this.change(subscription.id, { state: "granted", why: "" });
    });
  }

  unsubscribe(subscription) {
    this.subscriptions.set(this.subscriptions.get().filter((each) => each.id !== subscription.id));
    if (subscription.state === "granted") this.client?.unsubscribe(wire(subscription, this.version));
  }

  change(id, fields) {
    this.subscriptions.set(this.subscriptions.get().map((each) => (each.id === id ? { ...each, ...fields } : each)));
  }

  // returns: a promise of the acknowledgement; of QoS 0, that it was sent. It fails with a sentence.
  publish({ topic, payload, qos = 0, retain = false, properties = {} }) {
    if (this.state.get().kind !== "connected") return Promise.reject(new Error("The console is not connected."));
    const wrong = faultOfTopic(topic) || faultOfProperties(properties) || faultOfSize(topic, payload, this.packetBytesMax);
    if (wrong) return Promise.reject(new Error(wrong));
    const options = { qos, retain, ...(this.version === 5 ? { properties } : {}) };
    return new Promise((resolve, reject) => {
      this.pending.add(reject);
      this.client.publish(topic, payload, options, (fault, packet) => {
        if (!this.pending.delete(reject)) return; // the connection ended, and so it was told
        const code = packet?.reasonCode ?? fault?.code ?? 0;
        if (fault || code >= 128) reject(new Error(reasonOf(packet, code >= 128 ? refusal(code) : sentence(fault))));
        else resolve(code === 16 ? "There is no subscriber for it." : "");
      });
    });
  }

  arrived(topic, payload, packet) {
    const properties = packet.properties ?? {};
    const bytes = new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength);
    this.number += 1;
    const held = bytes.length < payload.buffer.byteLength ? bytes.slice() : bytes; // not the chunk that it came in
    const subscriptions = [properties.subscriptionIdentifier ?? []].flat();
    this.buffer.push({
      id: this.number, topic, payload: held, qos: packet.qos, retain: packet.retain, dup: packet.dup, properties, at: Date.now(),
      subscriptions, recordedAt: this.subscriptions.get().some((each) => each.from && subscriptions.includes(each.id)) ? recordTime(properties) : null,
    });
    this.size += held.length;
    this.received += 1;
    while (this.buffer.length > MESSAGES_MAX || (this.size > MESSAGES_BYTES_MAX && this.buffer.length > 1)) {
      this.size -= this.buffer.shift().payload.length;
      this.dropped += 1;
    }
    if (!this.isDue) {
      this.isDue = true;
      this.clock.later(() => this.show());
    }
  }

  show() {
    this.isDue = false;
    this.messages.set([...this.buffer]);
    this.counts.set({ received: this.received, dropped: this.dropped });
  }

  clear() {
    this.buffer = [];
    this.size = this.received = this.dropped = 0;
    this.isDue = false;
    this.show();
  }
}

// The filter of the packet: 3.1.1 has no properties, a replay is a filter there.
export const wire = ({ filter, from }, version) => (from && version !== 5 ? `$log/${from}/${filter}` : filter);

// One line for a row of the list, made when the row is drawn.
export const lineOf = (message) => (message.line ??= payloadLine(message.payload, message.properties.contentType));

// Of a replay by MQTT 5: when the broker received the record, µs since 1970; null: it was not told
function recordTime(properties) {
  const told = [properties.userProperties?.["rumq-time"]].flat().at(-1); // behind those of the publisher
  const milliseconds = told ? Date.parse(told) : NaN;
  return Number.isNaN(milliseconds) ? null : milliseconds * 1000;
}

// Messages whose topic or payload has the text.
export function filtered(messages, text) {
  const wanted = text.toLowerCase();
  return wanted ? messages.filter((each) => each.topic.toLowerCase().includes(wanted) || lineOf(each).toLowerCase().includes(wanted)) : messages;
}

const REASONS = {
  128: "unspecified error", 131: "the broker cannot do that", 133: "the client id is not valid", 134: "the token is not accepted", 135: "this token may not do that",
  136: "the broker is not available", 137: "the broker is busy", 138: "banned", 143: "the topic filter is not valid", 144: "the topic is not valid", 151: "a quota is exceeded", 153: "the payload is not of the format that it announces", 5: "this token may not do that", 4: "the token is not accepted",
};
export const refusal = (code) => `${REASONS[code] ?? "refused"} (0x${code.toString(16).padStart(2, "0").toUpperCase()})`;

// What the broker says, or else what the code means.
function reasonOf(packet, otherwise) {
  const said = packet?.properties?.reasonString;
  return said ? `${said}` : otherwise;
}

function sentence(fault) {
  if (typeof fault?.code === "number" && fault.code > 0) return refusal(fault.code);
  return fault?.message || "the connection failed";
}
