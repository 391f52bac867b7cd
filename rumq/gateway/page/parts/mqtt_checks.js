// What MQTT lets no client send, checked before it is sent: the broker ends the connection of who sends it, and the library
// cannot even write some of it. A fault is a sentence; "" is none. MQTT 5.0, 1.5.4, 3.3.2.3 and 4.7. Knows no connection.

const TEXT_BYTES_MAX = 65_535;
const U32_MAX = 2 ** 32 - 1;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const utf8 = new TextEncoder();

// name: of what is checked, for the sentence
export function faultOfText(name, text) {
  if (text.includes("\0")) return `${name} has a null character, which MQTT forbids.`;
  if (LONE_SURROGATE.test(text)) return `${name} has half of a character (a lone surrogate), which MQTT forbids.`;
  const size = text.length > TEXT_BYTES_MAX / 3 ? utf8.encode(text).length : 0;
  return size > TEXT_BYTES_MAX ? `${name} has ${size.toLocaleString("en")} bytes; MQTT takes 65,535 bytes at most.` : "";
}

export function faultOfTopic(topic, name = "The topic") {
  if (!topic) return `${name} is empty.`;
  if (/[+#]/.test(topic)) return `${name} may have no wildcards (+ and #): a message is published to one topic.`;
  return faultOfText(name, topic);
}

export function faultOfFilter(given) {
  let filter = given;
  if (!given) return "The topic filter is empty.";
  if (given.startsWith("$share/")) {
    const [, share, ...rest] = given.split("/");
    filter = rest.join("/");
    if (!share || !filter || /[+#]/.test(share)) return "A shared subscription is $share/NAME/FILTER, and NAME has no wildcards.";
  }
  const levels = filter.split("/");
  if (levels.slice(0, -1).some((level) => level.includes("#"))) return "In a topic filter # is the last level: nothing may follow it.";
  if (levels.some((level) => level.length > 1 && level.includes("#"))) return "In a topic filter # is a level of its own, as in plant/#.";
  if (levels.some((level) => level.length > 1 && level.includes("+"))) return "In a topic filter + is a level of its own, as in plant/+/state.";
  return faultOfText("The topic filter", given);
}

// properties: of a PUBLISH, with the names of MQTT.js
export function faultOfProperties({ contentType, responseTopic, correlationData, messageExpiryInterval, userProperties } = {}) {
  const texts = Object.entries(userProperties ?? {}).flatMap(([name, value]) => [["The name of a user property", name],
    ...[value].flat().map((each) => [`The user property ${name.slice(0, 40)}`, each])]);
  if (contentType !== undefined) texts.push(["The content type", contentType]);
  const wrong = texts.map(([name, text]) => faultOfText(name, text)).find(Boolean);
  if (wrong) return wrong;
  if (responseTopic !== undefined && faultOfTopic(responseTopic, "The response topic")) return faultOfTopic(responseTopic, "The response topic");
  if ((correlationData?.length ?? 0) > TEXT_BYTES_MAX) return "The correlation data has more than 65,535 bytes.";
  if (messageExpiryInterval !== undefined && !(Number.isInteger(messageExpiryInterval) && messageExpiryInterval >= 0 && messageExpiryInterval <= U32_MAX)) {
    return "A message expires after a whole number of seconds, 4,294,967,295 at most.";
  }
  return "";
}

// bytesMax: the largest packet that the broker takes, of its CONNACK; without it there is no bound
export function faultOfSize(topic, payload, bytesMax) {
  const size = (typeof payload === "string" ? utf8.encode(payload).length : payload.length) + utf8.encode(topic).length;
  return bytesMax && size > bytesMax ? `The message has ${size.toLocaleString("en")} bytes; this broker takes ${bytesMax.toLocaleString("en")} at most (mqtt.packet_bytes_max).` : "";
}
