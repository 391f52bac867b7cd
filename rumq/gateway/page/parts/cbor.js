// CBOR to values that `diagnostic` prints: integers, strings, containers (also of indefinite length), tags, floats. RFC 8949.

import { DEPTH_MAX, Malformed, Named, Reader, narrowed } from "./diagnostic.js";

const BREAK = Symbol("break");
const SIMPLE = new Map([[20, false], [21, true], [22, null], [23, undefined]]);
const TAGS = new Map([[0, "time "], [1, "time "], [32, "uri "], [37, "uuid "], [55799, "cbor "]]);

/** One item that takes all of the bytes. throws: Malformed */
export function decodeCbor(bytes) {
  const reader = new Reader(bytes);
  const value = item(reader, 0);
  if (value === BREAK) throw new Malformed("a break stands outside of a container");
  if (reader.left) throw new Malformed(`${reader.left} bytes follow the CBOR item`);
  return value;
}

function item(reader, depth) {
  if (depth > DEPTH_MAX) throw new Malformed(`more than ${DEPTH_MAX} levels`);
  const first = reader.u8();
  const major = first >> 5, info = first & 31;
  if (major === 7) return simple(reader, info);
  const count = argument(reader, info);
  if (count === null && (major < 2 || major === 6)) throw unknown(reader, info);
  switch (major) {
    case 0: return narrowed(count);
    case 1: return narrowed(-1n - BigInt(count));
    case 2: return count === null ? joined(reader, 2, depth) : reader.take(count);
    case 3: return count === null ? joined(reader, 3, depth) : reader.text(count);
    case 4: return array(reader, count, depth);
    case 5: return map(reader, count, depth);
  }
  return tagged(Number(count), inside(reader, depth));
}

/** The number after the first byte; null: indefinite. */
function argument(reader, info) {
  if (info < 24) return info;
  if (info === 24) return reader.u8();
  if (info === 25) return reader.u16();
  if (info === 26) return reader.u32();
  if (info === 27) return reader.u64();
  if (info === 31) return null;
  throw unknown(reader, info);
}

const unknown = (reader, info) => new Malformed(`additional information ${info} at byte ${reader.at - 1} has no meaning in CBOR`);

/** An item that may not be a break. */
function inside(reader, depth) {
  const value = item(reader, depth + 1);
  if (value === BREAK) throw new Malformed(`a break at byte ${reader.at - 1} stands where an item is wanted`);
  return value;
}

function array(reader, count, depth) {
  const found = [];
  if (count === null) for (let each; (each = item(reader, depth + 1)) !== BREAK; ) found.push(each);
  else for (let left = reader.items(count); left > 0; left--) found.push(inside(reader, depth));
  return found;
}

function map(reader, count, depth) {
  const found = new Map();
  let left = count === null ? Infinity : reader.items(count);
  for (; left > 0; left--) {
    const key = count === null ? item(reader, depth + 1) : inside(reader, depth);
    if (key === BREAK) break;
    found.set(key, inside(reader, depth));
  }
  return found;
}

/** A string in pieces, each of a known length. */
function joined(reader, major, depth) {
  const pieces = [];
  let length = 0;
  for (;;) {
    const first = reader.u8();
    if (first === 0xff) break;
    const count = first >> 5 === major ? argument(reader, first & 31) : null;
    if (count === null) throw new Malformed(`a piece of a string at byte ${reader.at - 1} is none`);
    const piece = reader.take(count);
    pieces.push(piece);
    length += piece.length;
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return major === 2 ? whole : new Reader(whole).text(length);
}

function simple(reader, info) {
  if (info === 25) return half(reader.u16());
  if (info === 26) return reader.f32();
  if (info === 27) return reader.f64();
  if (info === 31) return BREAK;
  const number = info === 24 ? reader.u8() : info;
  if (info > 24 || (info === 24 && number < 32)) throw unknown(reader, info);
  return SIMPLE.has(number) ? SIMPLE.get(number) : new Named("simple", number);
}

/** RFC 8949, appendix D. */
function half(bits) {
  const exponent = (bits >> 10) & 31, fraction = bits & 1023;
  let value;
  if (exponent === 0) value = fraction * 2 ** -24;
  else if (exponent === 31) value = fraction ? NaN : Infinity;
  else value = (1024 + fraction) * 2 ** (exponent - 25);
  return bits & 0x8000 ? -value : value;
}

function tagged(tag, value) {
  if ((tag === 2 || tag === 3) && value instanceof Uint8Array && value.length <= 64) {
    const magnitude = value.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
    return tag === 2 ? magnitude : -1n - magnitude;
  }
  if (tag === 1 && typeof value === "number" && Math.abs(value) < 8.64e12) {
    return new Named("time ", new Date(value * 1000).toISOString());
  }
  return new Named(TAGS.get(tag) ?? `tag ${tag} `, value);
}
