// A replay as commands of a shell and of Python: any topic and start, quoted so that they stay what they are.

// A word of a POSIX shell; control characters by $'...'.
export function quoted(text) {
  if (/^[\w./@:+-]+$/.test(text)) return text;
  if (!/[\u0000-\u001f\u007f]/.test(text)) return `'${text.replaceAll("'", "'\\''")}'`;
  const escaped = (one) => (one === "\\" || one === "'" ? `\\${one}` : `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `$'${text.replace(/[\\'\u0000-\u001f\u007f]/g, escaped)}'`;
}

const python = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

export function spark(topic, from) {
  const isOffset = /^\d+$/.test(from);
  const start = isOffset || from === "earliest" ? "" : `\n    .option("start", ${python(from)})`;
  const where = isOffset ? `\n    .where("topic_offset >= ${from}")` : "";
  return `rows = (\n    spark.read.format("rumq")\n    .option("subscribe", ${python(topic)})${start}\n    .load("rumq-data")${where}\n)`;
}

// The first listener's host and port; a broker that listens everywhere is where this page came from.
export function addressOf(name, here = globalThis.location?.hostname ?? "localhost") {
  const [, host, port] = /^(.*):(\d+)$/.exec(name) ?? [null, "", "1883"];
  const isEverywhere = !host || ["0.0.0.0", "::", "[::]", "*"].includes(host);
  return [isEverywhere ? here : host.replace(/^\[|\]$/g, ""), port === "0" ? "1883" : port]; // 0: any free one
}
