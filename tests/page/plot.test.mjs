// Axes of sizes have steps that are round in KiB, MiB and GiB: 8 MiB and 16 MiB, never 9.54 MiB.

import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.document = { baseURI: "http://here/" };
const { stepsFor } = await import("../../rumq/gateway/page/parts/plot.js");
const { byteRate, bytes, duration, short } = await import("../../rumq/gateway/page/parts/format.js");

test("sizes have steps of powers of two, other figures of 1, 2 and 5", () => {
  for (const format of [bytes, byteRate]) {
    for (const step of stepsFor(format).filter((each) => each >= 1024 && each < 2 ** 40)) assert.match(format(3 * step), /^\d{1,3}(,\d{3})*(\.[05]?0?)? [KMGT]iB/, format(3 * step));
  }
  for (const format of [short, duration]) assert.ok(stepsFor(format).includes(5000) && !stepsFor(format).includes(4096));
});
