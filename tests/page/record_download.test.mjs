// A download goes on by cursors to the end, within its bounds, and names a file that every system takes.

import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.document = { baseURI: "http://here/" };
const { collected, fileName, RECORDS_MAX } = await import("../../rumq/gateway/page/parts/record_download.js");

const pages = (...answers) => {
  const asked = [];
  const ask = async (name, params) => { asked.push([name, params.cursor, params.contains]); return answers[asked.length - 1]; };
  return { asked, ask };
};

test("pages are fetched until there is no cursor", async () => {
  const { asked, ask } = pages({ records: [{ offset: 0 }], cursor: "a", lost: 2 }, { records: [], cursor: "b" }, { records: [{ offset: 1 }], cursor: null });
  const told = [];
  const found = await collected({ topic: "t", contains: "x" }, (some) => told.push(some), undefined, ask);
  assert.deepEqual(found, { lines: ['{"offset":0}\n', '{"offset":1}\n'], count: 2, isCut: false, lost: 2 });
  assert.deepEqual(asked, [["records", null, "x"], ["records", "a", "x"], ["records", "b", "x"]]);
  assert.deepEqual(told, [1, 1, 2]);
});

test("a cursor that does not move is the end", async () => {
  const { asked, ask } = pages({ records: [{ offset: 0 }], cursor: "a" }, { records: [], cursor: "a" });
  assert.equal((await collected({ topic: "t" }, () => {}, undefined, ask)).count, 1);
  assert.equal(asked.length, 2);
});

test("the bound on records cuts the file and says so", async () => {
  const page = { records: Array.from({ length: 1000 }, (_, offset) => ({ offset })), cursor: "more" };
  const found = await collected({ topic: "t" }, () => {}, undefined, async () => page);
  assert.deepEqual([found.count, found.isCut], [RECORDS_MAX, true]);
});

test("names of files have no slashes and no surprises", () => {
  assert.equal(fileName("plant/line-1/state"), "plant_line-1_state.jsonl");
  assert.equal(fileName("../../etc\u202e"), ".._.._etc_.jsonl");
  assert.equal(fileName("///"), "_.jsonl");
  assert.ok(fileName("x".repeat(5000)).length < 100);
});
