// Decoded MessagePack and CBOR as indented text: JSON where it can be, RFC 8949 section 8 for what JSON has not.

export const DEPTH_MAX = 64; // levels of maps and arrays; what is deeper is refused

/** Payload bytes are not what their kind says; the message is a sentence for people. */
export class Malformed extends Error {}

/** A value with a name before it: a CBOR tag, a MessagePack extension, a time. */
export class Named {
  constructor(name, value) {
    this.name = name;
    this.value = value;
  }
}

export const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

const INLINE_CHARS_MAX = 72;
const BYTES_SHOWN_MAX = 4096;

/** null, booleans, numbers, bigints, strings, Uint8Array, Array, Map and Named as text of about `charsMax` characters. */
export function diagnostic(value, charsMax = 1 << 16) {
  const parts = [];
  let length = 0;
  const put = (text) => {
    parts.push(text);
    length += text.length;
  };
  const write = (item, indent) => {
    if (length > charsMax) return;
    if (item instanceof Named) {
      put(item.name + "(");
      write(item.value, indent);
      put(")");
    } else if (Array.isArray(item) || item instanceof Map) {
      writeContainer(item, indent);
    } else put(scalar(item));
  };
  const writeContainer = (item, indent) => {
    const isMap = item instanceof Map;
    const [open, close] = isMap ? "{}" : "[]";
    const entries = isMap ? [...item] : item;
    if (!isMap && entries.length <= 32 && entries.every(isScalar)) {
      const line = entries.map(scalar).join(", ");
      if (line.length <= INLINE_CHARS_MAX) return put(open + line + close);
    }
    if (!entries.length) return put(open + close);
    put(open);
    entries.forEach((entry, number) => {
      if (length > charsMax) return;
      put((number ? "," : "") + "\n" + indent + "  ");
      if (isMap) {
        write(entry[0], indent + "  ");
        put(": ");
        write(entry[1], indent + "  ");
      } else write(entry, indent + "  ");
    });
    put("\n" + indent + close);
  };
  write(value, "");
  return parts.join("");
}

const isScalar = (item) => !(Array.isArray(item) || item instanceof Map || item instanceof Named);

function scalar(item) {
  if (item instanceof Uint8Array) {
    const cut = item.length > BYTES_SHOWN_MAX ? `… of ${item.length} bytes` : "";
    return `h'${hexOf(item.subarray(0, BYTES_SHOWN_MAX))}${cut}'`;
  }
  if (typeof item === "string") return JSON.stringify(item);
  if (Object.is(item, -0)) return "-0";
  return String(item);
}

/** Big-endian reading with bounds. A claim of more than there is fails before anything of its size is made. */
export class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }

  get left() {
    return this.bytes.length - this.at;
  }

  /** Where `count` bytes begin that are passed now. */
  pass(count) {
    if (count > this.left) throw new Malformed(`${count} bytes are announced at byte ${this.at}, ${this.left} are left`);
    const begin = this.at;
    this.at += Number(count);
    return begin;
  }

  u8() {
    return this.bytes[this.pass(1)];
  }
  u16() {
    return this.view.getUint16(this.pass(2));
  }
  u32() {
    return this.view.getUint32(this.pass(4));
  }
  u64() {
    return this.view.getBigUint64(this.pass(8));
  }
  f32() {
    return this.view.getFloat32(this.pass(4));
  }
  f64() {
    return this.view.getFloat64(this.pass(8));
  }

  take(count) {
    const begin = this.pass(count);
    return this.bytes.subarray(begin, this.at);
  }

  /** A string; bytes where they are not UTF-8. */
  text(count) {
    const bytes = this.take(count);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      return bytes;
    }
  }

  /** The number of items that a container announces, each at least a byte. */
  items(count) {
    if (count > this.left) throw new Malformed(`${count} items are announced at byte ${this.at}, ${this.left} bytes are left`);
    return Number(count);
  }
}

/** A bigint as a number where that is exact. */
export const narrowed = (value) =>
  value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
