// The MQTT client of the page: one connection to `/mqtt`, its subscriptions, and a bounded list of what arrived.
import { payloadLine } from "./payload.js";
import { store } from "./store.js";

export const MESSAGES_MAX = 1000;
export const MESSAGES_BYTES_MAX = 16 << 20;
const SHOW_MILLISECONDS = 100; // of many messages a second, each tenth of a second is drawn

// connect: mqtt.connect; later: setTimeout, or that of a test
export class MqttSession {
  constructor(connect, later = (act) => setTimeout(act, SHOW_MILLISECONDS)) {
    this.connectClient = connect;
    this.later = later;
    this.state = store({ kind: "off", why: "" }); // kind: off, connecting, connected or lost
    this.subscriptions = store([]); // {id, filter, from, qos, state: "asked" | "granted" | "refused" | "ended", why, count}
    this.messages = store([]); // the newest last: {id, topic, payload, qos, retain, properties, at, line}
    this.counts = store({ received: 0, dropped: 0 });
    this.client = null;
    this.number = 0;
    this.clear();
  }

  // address: ws(s)://host/mqtt; version: 5 or 4 (3.1.1)
  connect({ address, secret, version = 5, clientId }) {
    this.disconnect();
    this.version = version;
    this.state.set({ kind: "connecting", why: "" });
    const client = this.connectClient(address, {
      protocolVersion: version, clientId, username: "page", password: secret, clean: true, keepalive: 30,
      reconnectPeriod: 2000, connectTimeout: 15000, resubscribe: false, timerVariant: "native",
      ...(version === 5 ? { properties: { sessionExpiryInterval: 0, receiveMaximum: 500 } } : {}),
    });
    this.client = client;
    const mine = (act) => (...given) => this.client === client && act(...given);
    client.on("connect", mine(() => this.connected()));
    client.on("close", mine(() => this.lost()));
    client.on("error", mine((fault) => this.failed(fault)));
    client.on("disconnect", mine((packet) => { this.why = reasonOf(packet, "the broker ended the connection"); }));
    client.on("message", mine((topic, payload, packet) => this.arrived(topic, payload, packet)));
  }

  disconnect() {
    const client = this.client;
    this.client = null;
    if (client) client.end(true);
    this.subscriptions.set([]);
    this.state.set({ kind: "off", why: "" });
  }

  connected() {
    this.why = "";
    this.state.set({ kind: "connected", why: "" });
    for (const each of this.subscriptions.get()) if (!each.from && each.state !== "refused") this.ask(each);
  }

  lost() {
    if (this.state.get().kind === "off") return;
    this.state.set({ kind: "lost", why: this.why || "the connection ended; it is opened again" });
    // A replay would begin again where it began: its messages would be here twice.
    for (const each of this.subscriptions.get()) if (each.from) this.change(each.id, { state: "ended", why: "the connection ended" });
  }

  // A CONNACK with a fault comes again at each attempt: there is no sense in more of them.
  failed(fault) {
    this.why = sentence(fault);
    if (fault.code === undefined || typeof fault.code === "string") return;
    const client = this.client;
    this.client = null;
    client.end(true);
    this.state.set({ kind: "off", why: this.why });
  }

  // from: empty, or where a replay starts (docs/replay.md)
  subscribe({ filter, from = "", qos = 0 }) {
    this.number += 1;
    const made = { id: this.number, filter, from, qos, state: "asked", why: "", count: 0 };
    const others = this.subscriptions.get().filter((each) => wire(each, this.version) !== wire(made, this.version));
    this.subscriptions.set([...others, made]);
    this.ask(made);
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
    const options = { qos, retain, ...(this.version === 5 ? { properties } : {}) };
    return new Promise((resolve, reject) => {
      this.client.publish(topic, payload, options, (fault, packet) => {
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
    this.buffer.push({
      id: this.number, topic, payload: held, qos: packet.qos, retain: packet.retain, dup: packet.dup, properties, at: Date.now(),
      subscriptions: [properties.subscriptionIdentifier ?? []].flat(),
    });
    this.size += held.length;
    this.received += 1;
    while (this.buffer.length > MESSAGES_MAX || (this.size > MESSAGES_BYTES_MAX && this.buffer.length > 1)) {
      this.size -= this.buffer.shift().payload.length;
      this.dropped += 1;
    }
    if (!this.isDue) {
      this.isDue = true;
      this.later(() => this.show());
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
