// Payloads as text for people: JSON, MessagePack, CBOR, text or hex, by content type or by what parses. Never throws.

import { decodeCbor } from "./cbor.js";
import { diagnostic } from "./diagnostic.js";
import { decodeMsgpack } from "./msgpack.js";
import { visible } from "./visible.js";

export const KINDS = { json: "JSON", msgpack: "MessagePack", cbor: "CBOR", text: "text", hex: "hex" };
export const DECODED_BYTES_MAX = 1 << 20; // larger payloads are shown as text or hex, cut
export const SHOWN_CHARS_MAX = 1 << 16;
const HEX_BYTES_MAX = 1 << 13;
const INDENT_MAX = 32; // levels: text nested without end must not grow as its square

/** The bytes of a record or retained message of the REST interface. */
export function bytesOf({ payload, encoding }) {
  if (encoding !== "base64") return new TextEncoder().encode(payload);
  try {
    return Uint8Array.from(atob(payload), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array(0);
  }
}

/** {kind, text, note}: `kind` of KINDS or "" to choose; `note` says what was cut or why the kind could not be taken. */
export function decodePayload(bytes, { kind = "", contentType = "" } = {}) {
  const wanted = kind || kindOfContentType(contentType);
  let note = "";
  if (wanted) {
    try {
      return shown(wanted, bytes);
    } catch (fault) {
      note = `not ${KINDS[wanted] ?? wanted}: ${fault.message}`;
    }
  }
  const found = shown(guess(bytes), bytes);
  return { ...found, note: [note, found.note].filter(Boolean).join("; ") };
}

export function kindOfContentType(contentType) {
  const type = String(contentType ?? "").split(";")[0].trim().toLowerCase();
  if (/^(application|text)\/json$|\+json$/.test(type)) return "json";
  if (/^application\/(x-|vnd\.)?msgpack$|\+msgpack$/.test(type)) return "msgpack";
  if (/^application\/cbor$|\+cbor$/.test(type)) return "cbor";
  return type.startsWith("text/") ? "text" : "";
}

/** What the bytes are. A binary kind must be a container that takes all of them: single numbers would be guesses. */
export function guess(bytes) {
  const isWhole = bytes.length <= DECODED_BYTES_MAX;
  const text = maybeText(bytes.subarray(0, DECODED_BYTES_MAX), !isWhole);
  if (text !== null) return isWhole && /^\s*[[{"\-\dtfn]/.test(text) && parses(JSON.parse, text) ? "json" : "text";
  if (!isWhole) return "hex";
  const isContainer = (value) => typeof value === "object" && value !== null && !(value instanceof Uint8Array);
  for (const [name, decode] of [["msgpack", decodeMsgpack], ["cbor", decodeCbor]]) {
    if (parses((input) => { if (!isContainer(decode(input))) throw new TypeError(); }, bytes)) return name;
  }
  return "hex";
}

function parses(parse, input) {
  try {
    parse(input);
    return true;
  } catch {
    return false;
  }
}

/** UTF-8 without control characters, or null. */
function maybeText(bytes, isCut) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
    return /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

/** throws: an error with a sentence, if the bytes are not of that kind */
function shown(kind, bytes) {
  if (kind === "hex") {
    const note = bytes.length > HEX_BYTES_MAX ? `the first ${HEX_BYTES_MAX} of ${bytes.length} bytes` : "";
    return { kind, text: hexDump(bytes.subarray(0, HEX_BYTES_MAX)), note };
  }
  if (kind !== "text" && bytes.length > DECODED_BYTES_MAX) throw new RangeError(`${bytes.length} bytes are too many to decode`);
  const whole = decoded(kind, bytes);
  const isCut = whole.length > SHOWN_CHARS_MAX || (kind === "text" && bytes.length > DECODED_BYTES_MAX);
  const text = visible(isCut ? whole.slice(0, SHOWN_CHARS_MAX) : whole);
  return { kind, text, note: isCut ? `the first ${text.length} characters of a payload of ${bytes.length} bytes` : "" };
}

function decoded(kind, bytes) {
  if (kind === "msgpack") return diagnostic(decodeMsgpack(bytes), SHOWN_CHARS_MAX);
  if (kind === "cbor") return diagnostic(decodeCbor(bytes), SHOWN_CHARS_MAX);
  const isJson = kind === "json";
  const text = new TextDecoder("utf-8", { fatal: isJson }).decode(bytes.subarray(0, DECODED_BYTES_MAX));
  if (!isJson) return text;
  JSON.parse(text);
  return prettyJson(text);
}

/** Valid JSON, indented. Its own characters stay, so that 12345678901234567890 does not become ...567000. */
export function prettyJson(text) {
  const parts = [];
  let depth = 0, length = 0;
  const line = () => "\n" + "  ".repeat(Math.min(depth, INDENT_MAX));
  const tokens = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;
  let before = "";
  for (const [token] of text.matchAll(tokens)) {
    let put = token;
    if (token === "}" || token === "]") {
      depth--;
      put = before === "{" || before === "[" ? token : line() + token;
    } else if (before === "{" || before === "[" || before === ",") put = line() + token;
    if (token === "{" || token === "[") depth++;
    if (token === ":") put = ": ";
    parts.push(put);
    before = token;
    if ((length += put.length) > SHOWN_CHARS_MAX) break;
  }
  return parts.join("");
}

/** Offset, 16 bytes, and the characters of ASCII, a line each. */
export function hexDump(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = Array.from(bytes.subarray(at, at + 16));
    const hex = row.map((byte, n) => byte.toString(16).padStart(2, "0") + (n === 7 ? " " : "")).join(" ");
    const ascii = row.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(48)}  ${ascii}`);
  }
  return lines.join("\n");
}

/** One line for a row of a table: what the payload says, without indentation. */
export function payloadLine(bytes, contentType = "", charsMax = 120) {
  const head = bytes.subarray(0, 4096);
  const { kind, text } = decodePayload(bytes.length > DECODED_BYTES_MAX ? head : bytes, { contentType });
  if (kind === "hex") return Array.from(head.subarray(0, 24), (byte) => byte.toString(16).padStart(2, "0")).join(" ") + (bytes.length > 24 ? " …" : "");
  const line = kind === "text" ? text : text.replace(/\n\s*/g, " ");
  return (line.length > charsMax ? line.slice(0, charsMax) + "…" : line).replace(/\n/g, "\u240a");
}
