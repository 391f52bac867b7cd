// One action for each of many: a few at a time, counted, and on to the others where one fails.

export const MANY_MAX = 1000;
const AT_ONCE = 4;
const PAGE = 200;

// find: (offset, limit) -> a promise of {rows, leftOut}. returns: {rows, leftOut}, at most MANY_MAX rows
export async function allRows(find) {
  const rows = [];
  let leftOut = 0;
  do {
    const found = await find(rows.length, PAGE);
    rows.push(...found.rows);
    leftOut = found.leftOut;
    if (!found.rows.length) break;
  } while (leftOut > 0 && rows.length < MANY_MAX);
  return { rows: rows.slice(0, MANY_MAX), leftOut: leftOut + Math.max(0, rows.length - MANY_MAX) };
}

// act: (one) -> a promise. returns: {done, failed, why: of the first that failed}
export async function eachOf(list, act) {
  const left = [...list];
  const sum = { done: 0, failed: 0, why: "" };
  async function work() {
    while (left.length) {
      const one = left.shift();
      try {
        await act(one);
        sum.done += 1;
      } catch (fault) {
        sum.failed += 1;
        sum.why ||= fault.message;
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return sum;
}
