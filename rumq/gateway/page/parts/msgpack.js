// MessagePack to values that `diagnostic` prints. https://github.com/msgpack/msgpack/blob/master/spec.md

import { DEPTH_MAX, Malformed, Named, Reader, narrowed } from "./diagnostic.js";

/** One value that takes all of the bytes. throws: Malformed */
export function decodeMsgpack(bytes) {
  const reader = new Reader(bytes);
  const value = item(reader, 0);
  if (reader.left) throw new Malformed(`${reader.left} bytes follow the MessagePack value`);
  return value;
}

function item(reader, depth) {
  if (depth > DEPTH_MAX) throw new Malformed(`more than ${DEPTH_MAX} levels`);
  const first = reader.u8();
  if (first < 0x80) return first;
  if (first < 0x90) return map(reader, first & 15, depth);
  if (first < 0xa0) return array(reader, first & 15, depth);
  if (first < 0xc0) return reader.text(first & 31);
  if (first >= 0xe0) return first - 256;
  if (first >= 0xd4 && first <= 0xd8) return extension(reader, 1 << (first - 0xd4));
  switch (first) {
    case 0xc0: return null;
    case 0xc2: return false;
    case 0xc3: return true;
    case 0xc4: return reader.take(reader.u8());
    case 0xc5: return reader.take(reader.u16());
    case 0xc6: return reader.take(reader.u32());
    case 0xc7: return extension(reader, reader.u8());
    case 0xc8: return extension(reader, reader.u16());
    case 0xc9: return extension(reader, reader.u32());
    case 0xca: return reader.f32();
    case 0xcb: return reader.f64();
    case 0xcc: return reader.u8();
    case 0xcd: return reader.u16();
    case 0xce: return reader.u32();
    case 0xcf: return narrowed(reader.u64());
    case 0xd0: return reader.view.getInt8(reader.pass(1));
    case 0xd1: return reader.view.getInt16(reader.pass(2));
    case 0xd2: return reader.view.getInt32(reader.pass(4));
    case 0xd3: return narrowed(reader.view.getBigInt64(reader.pass(8)));
    case 0xd9: return reader.text(reader.u8());
    case 0xda: return reader.text(reader.u16());
    case 0xdb: return reader.text(reader.u32());
    case 0xdc: return array(reader, reader.u16(), depth);
    case 0xdd: return array(reader, reader.u32(), depth);
    case 0xde: return map(reader, reader.u16(), depth);
    case 0xdf: return map(reader, reader.u32(), depth);
  }
  throw new Malformed(`byte 0x${first.toString(16)} at ${reader.at - 1} has no meaning in MessagePack`);
}

function array(reader, count, depth) {
  const found = [];
  for (let left = reader.items(count); left > 0; left--) found.push(item(reader, depth + 1));
  return found;
}

function map(reader, count, depth) {
  const found = new Map();
  for (let left = reader.items(count); left > 0; left--) {
    const key = item(reader, depth + 1);
    found.set(key, item(reader, depth + 1));
  }
  return found;
}

function extension(reader, length) {
  const type = reader.view.getInt8(reader.pass(1));
  const body = reader.take(length);
  const time = type === -1 ? timestamp(body) : null;
  return time === null ? new Named(`extension ${type} `, body) : new Named("time ", time);
}

/** The standard's extension -1: 4, 8 or 12 bytes; null if it is none, or no date that JavaScript has. */
function timestamp(body) {
  const inner = new Reader(body);
  let seconds, nanoseconds;
  if (body.length === 4) [seconds, nanoseconds] = [inner.u32(), 0];
  else if (body.length === 8) {
    const both = inner.u64();
    [seconds, nanoseconds] = [Number(both & 0x3ffffffffn), Number(both >> 34n)];
  } else if (body.length === 12) {
    nanoseconds = inner.u32();
    seconds = Number(inner.view.getBigInt64(inner.pass(8)));
  } else return null;
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime()) || nanoseconds > 999_999_999) return null;
  const fraction = nanoseconds ? "." + String(nanoseconds).padStart(9, "0").replace(/0+$/, "") : "";
  return date.toISOString().replace(/\.000Z$/, fraction + "Z");
}
