// Actions on all that match: every row once, bounded, and one fault does not end the others.

import assert from "node:assert/strict";
import { test } from "node:test";
import { allRows, eachOf, MANY_MAX } from "../../rumq/gateway/page/parts/each_of.js";

test("all pages are collected, up to a bound", async () => {
  const all = Array.from({ length: 450 }, (_, n) => n);
  const find = (of) => async (offset, limit) => ({ rows: of.slice(offset, offset + limit), leftOut: Math.max(0, of.length - offset - limit) });
  assert.deepEqual(await allRows(find(all)), { rows: all, leftOut: 0 });
  const many = Array.from({ length: MANY_MAX + 250 }, (_, n) => n);
  const found = await allRows(find(many));
  assert.deepEqual([found.rows.length, found.leftOut], [MANY_MAX, 250]);
});

test("each is done once, and a fault is counted", async () => {
  const seen = [];
  const found = await eachOf(["a", "b", "c", "d", "e", "f"], async (one) => {
    seen.push(one);
    if (one === "c") throw new Error("gone");
  });
  assert.deepEqual(found, { done: 5, failed: 1, why: "gone" });
  assert.deepEqual(seen.sort(), ["a", "b", "c", "d", "e", "f"]);
});
