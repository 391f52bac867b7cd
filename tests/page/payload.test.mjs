// The decoders of the page, with the vectors of their standards and with hostile bytes. Run by test_modules.py.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeCbor } from "../../rumq/gateway/page/parts/cbor.js";
import { diagnostic } from "../../rumq/gateway/page/parts/diagnostic.js";
import { decodeMsgpack } from "../../rumq/gateway/page/parts/msgpack.js";
import { bytesOf, decodePayload, guess, hexDump, payloadLine, prettyJson, SHOWN_CHARS_MAX } from "../../rumq/gateway/page/parts/payload.js";
import { visible, visibleLine } from "../../rumq/gateway/page/parts/visible.js";

const hex = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const utf8 = (text) => new TextEncoder().encode(text);

// RFC 8949, appendix A.
const CBOR = {
  "00": "0", "17": "23", "1818": "24", "1903e8": "1000", "1a000f4240": "1000000", "1b000000e8d4a51000": "1000000000000",
  "1bffffffffffffffff": "18446744073709551615", "c249010000000000000000": "18446744073709551616",
  "3bffffffffffffffff": "-18446744073709551616", "c349010000000000000000": "-18446744073709551617",
  "20": "-1", "29": "-10", "3863": "-100", "3903e7": "-1000", "f90000": "0", "f98000": "-0", "f93c00": "1",
  "fb3ff199999999999a": "1.1", "f93e00": "1.5", "f97bff": "65504", "fa47c35000": "100000", "f90001": "5.960464477539063e-8",
  "f90400": "0.00006103515625", "f9c400": "-4", "f97c00": "Infinity", "f97e00": "NaN", "f9fc00": "-Infinity",
  "f4": "false", "f5": "true", "f6": "null", "f7": "undefined", "f0": "simple(16)", "f8ff": "simple(255)",
  "c074323031332d30332d32315432303a30343a30305a": 'time ("2013-03-21T20:04:00Z")',
  "c11a514b67b0": 'time ("2013-03-21T20:04:00.000Z")', "d74401020304": "tag 23 (h'01020304')",
  "d82076687474703a2f2f7777772e6578616d706c652e636f6d": 'uri ("http://www.example.com")',
  "40": "h''", "4401020304": "h'01020304'", "60": '""', "6161": '"a"', "62225c": '"\\"\\\\"', "62c3bc": '"ü"',
  "64f0908591": '"𐅑"', "80": "[]", "83010203": "[1, 2, 3]", "8301820203820405": "[\n  1,\n  [2, 3],\n  [4, 5]\n]",
  "a0": "{}", "a201020304": "{\n  1: 2,\n  3: 4\n}", "a26161016162820203": '{\n  "a": 1,\n  "b": [2, 3]\n}',
  "5f42010243030405ff": "h'0102030405'", "7f657374726561646d696e67ff": '"streaming"', "9fff": "[]",
  "9f018202039f0405ffff": "[\n  1,\n  [2, 3],\n  [4, 5]\n]", "bf61610161629f0203ffff": '{\n  "a": 1,\n  "b": [2, 3]\n}',
  "826161bf61626163ff": '[\n  "a",\n  {\n    "b": "c"\n  }\n]',
};

test("CBOR is decoded as appendix A of the RFC says", () => {
  for (const [bytes, text] of Object.entries(CBOR)) assert.equal(diagnostic(decodeCbor(hex(bytes))), text, bytes);
});

const MSGPACK = {
  "c0": "null", "c3": "true", "7f": "127", "ff": "-1", "e0": "-32", "ccff": "255", "cdffff": "65535", "ceffffffff": "4294967295",
  "cfffffffffffffffff": "18446744073709551615", "d080": "-128", "d18000": "-32768", "d280000000": "-2147483648",
  "d38000000000000000": "-9223372036854775808", "cb3ff199999999999a": "1.1", "ca3fc00000": "1.5", "a161": '"a"', "d90161": '"a"',
  "da000161": '"a"', "db0000000161": '"a"', "c40101": "h'01'", "c5000101": "h'01'", "90": "[]", "930102c2": "[1, 2, false]",
  "dc000101": "[1]", "dd0000000101": "[1]", "82a16101a16202": '{\n  "a": 1,\n  "b": 2\n}', "de0001a16101": '{\n  "a": 1\n}',
  "df00000001a16101": '{\n  "a": 1\n}', "8101c0": "{\n  1: null\n}", "d4057f": "extension 5 (h'7f')", "c70205ffff": "extension 5 (h'ffff')",
  "d6ff514b67b0": 'time ("2013-03-21T20:04:00Z")', "d7ff77359400514b67b0": 'time ("2013-03-21T20:04:00.5Z")',
  "c70cff00000001ffffffffffffffff": 'time ("1969-12-31T23:59:59.000000001Z")', "a2ff00": "h'ff00'",
};

test("MessagePack is decoded", () => {
  for (const [bytes, text] of Object.entries(MSGPACK)) assert.equal(diagnostic(decodeMsgpack(hex(bytes))), text, bytes);
});

test("what is cut off, trailing or without meaning is refused with a sentence", () => {
  for (const [bytes, text] of Object.entries({ ...CBOR })) {
    assert.throws(() => decodeCbor(hex(bytes + "00")), /follow/, `${text} and more`);
    for (let n = 2; n < bytes.length; n += 2) assert.throws(() => decodeCbor(hex(bytes.slice(0, n))), { name: "Error" }, text);
  }
  for (const bytes of Object.keys(MSGPACK)) {
    for (let n = 2; n < bytes.length; n += 2) assert.throws(() => decodeMsgpack(hex(bytes.slice(0, n))), { name: "Error" });
  }
  for (const bytes of ["ff", "1c", "5f00ff", "5f5fff", "f800", "df", "a1ff", "3f"]) assert.throws(() => decodeCbor(hex(bytes)), { name: "Error" }, bytes);
  assert.throws(() => decodeMsgpack(hex("c1")), /no meaning/);
});

test("a claim of more than there is costs nothing, and depth is bounded", () => {
  for (const claim of ["ddffffffff", "dfffffffff", "dbffffffff", "c6ffffffff"]) assert.throws(() => decodeMsgpack(hex(claim)), /announced/);
  for (const claim of ["9bffffffffffffffff", "bbffffffffffffffff", "5bffffffffffffffff"]) assert.throws(() => decodeCbor(hex(claim)), /announced/);
  assert.throws(() => decodeCbor(hex("81".repeat(100_000) + "00")), /levels/);
  assert.throws(() => decodeCbor(hex("c1".repeat(100_000) + "00")), /levels/);
  assert.throws(() => decodeMsgpack(hex("91".repeat(100_000) + "00")), /levels/);
  const before = process.memoryUsage().rss;
  assert.throws(() => decodeMsgpack(hex("dd000f0000".repeat(64) + "00".repeat(1 << 20) + "c1")));
  assert.ok(process.memoryUsage().rss - before < 200e6);
});

test("the kind is found: by content type, else by what parses", () => {
  assert.equal(guess(utf8('{"a": 1}')), "json");
  assert.equal(guess(utf8(" [1]")), "json");
  assert.equal(guess(utf8("21.5")), "json");
  assert.equal(guess(utf8("{a: 1}")), "text");
  assert.equal(guess(utf8("on")), "text");
  assert.equal(guess(utf8("")), "text");
  assert.equal(guess(hex("82a16101a16202")), "msgpack");
  assert.equal(guess(hex("a26161016162820203")), "cbor");
  assert.equal(guess(hex("00ff00")), "hex");
  assert.equal(guess(hex("01")), "hex");
  assert.equal(decodePayload(hex("01"), { contentType: "application/msgpack" }).kind, "msgpack");
  assert.equal(decodePayload(hex("01"), { contentType: "application/senml+cbor" }).text, "1");
  assert.deepEqual(decodePayload(utf8('{"a":1}'), { contentType: "text/plain; charset=utf-8" }), { kind: "text", text: '{"a":1}', note: "" });
  const wrong = decodePayload(utf8("on"), { contentType: "application/json" });
  assert.equal(wrong.kind, "text");
  assert.match(wrong.note, /^not JSON: /);
  assert.equal(decodePayload(utf8("on"), { kind: "hex" }).kind, "hex");
});

test("JSON is indented, its numbers are those that were sent", () => {
  assert.equal(prettyJson('{"a":12345678901234567890,"b":[1,{}],"c":"x,:{\\"}","d":[]}'),
    '{\n  "a": 12345678901234567890,\n  "b": [\n    1,\n    {}\n  ],\n  "c": "x,:{\\"}",\n  "d": []\n}');
  const deep = "[".repeat(50_000) + "]".repeat(50_000);
  assert.ok(decodePayload(utf8(deep)).text.length <= SHOWN_CHARS_MAX);
});

test("no payload whatever throws, or gives more than a bounded text", () => {
  let seed = 7;
  const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff);
  for (let n = 0; n < 4000; n++) {
    const bytes = Uint8Array.from({ length: random() % 40 }, () => random() >> 8);
    for (const kind of ["", "json", "msgpack", "cbor", "text", "hex", "none"]) {
      const found = decodePayload(bytes, { kind });
      assert.ok(found.text.length < 2 * SHOWN_CHARS_MAX && found.kind);
    }
    payloadLine(bytes);
  }
});

test("a big payload is cut with a note", () => {
  const text = decodePayload(utf8("x".repeat(5_000_000)));
  assert.ok(text.text.length <= SHOWN_CHARS_MAX);
  assert.match(text.note, /of a payload of 5000000 bytes/);
  const binary = decodePayload(new Uint8Array(2_000_000).fill(255));
  assert.equal(binary.kind, "hex");
  assert.match(binary.note, /the first 8192 of 2000000 bytes/);
  assert.match(decodePayload(utf8(`"${"x".repeat(2_000_000)}"`), { kind: "json" }).note, /too many to decode/);
  assert.ok(payloadLine(utf8("x".repeat(5_000_000))).length < 200);
});

test("nothing that is shown hides or turns text", () => {
  assert.equal(visible("a\u202eb\u0000c\u200bd\ufeff\ud800\r\n\t\x1b[31m"), "a\\u202eb␀c\\u200bd\\ufeff\\ud800\n\t␛[31m");
  assert.equal(visible("grün 𐅑 😀 日本"), "grün 𐅑 😀 日本");
  assert.equal(visibleLine("a\nb", 10), "a␊b");
  assert.equal(visibleLine("x".repeat(30), 10), "x".repeat(10) + "…");
  assert.equal(decodePayload(utf8('{"a":"\u202e"}')).text, '{\n  "a": "\\u202e"\n}');
  assert.ok(!payloadLine(utf8("a\nb\u202e")).match(/[\n\u202e]/));
});

test("bytes of the REST interface", () => {
  assert.deepEqual(bytesOf({ payload: "/wA=", encoding: "base64" }), hex("ff00"));
  assert.deepEqual(bytesOf({ payload: "ü", encoding: "utf-8" }), hex("c3bc"));
  assert.deepEqual(bytesOf({ payload: "?", encoding: "base64" }), hex(""));
});

test("a hex dump has offset, bytes and ASCII", () => {
  assert.equal(hexDump(utf8("0123456789abcdefg\u0000")),
    "000000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  0123456789abcdef\n000010  67 00" + " ".repeat(45) + "g·");
});
