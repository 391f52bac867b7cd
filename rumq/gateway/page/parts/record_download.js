// The records of a topic as a file: JSON lines, fetched page by page, with bounds, and saved by the browser.
import { get } from "./api.js";

export const RECORDS_MAX = 100_000;
export const BYTES_MAX = 64 << 20;
const PAGE = 1000;

// asked: {topic, start, contains}; told: (records so far) -> nothing. A promise of {lines, count, isCut, lost}
export async function collected(asked, told, signal, ask = get) {
  const parts = [];
  let [count, size, lost, cursor] = [0, 0, 0, null];
  do {
    const answer = await ask("records", { ...asked, cursor, limit: PAGE }, signal);
    for (const record of answer.records) {
      const line = `${JSON.stringify(record)}\n`;
      if (count >= RECORDS_MAX || size + line.length > BYTES_MAX) return { lines: parts, count, isCut: true, lost };
      parts.push(line);
      count += 1;
      size += line.length;
    }
    lost += answer.lost ?? 0;
    const isSame = answer.cursor === cursor;
    cursor = answer.cursor;
    told(count);
    if (isSame && !answer.records.length) break; // the end, at a gateway whose cursor is never null
  } while (cursor !== null && cursor !== undefined);
  return { lines: parts, count, isCut: false, lost };
}

// A name that every file system takes.
export const fileName = (topic) => `${topic.replace(/[^\w.-]+/g, "_").slice(0, 80) || "records"}.jsonl`;

export function save(lines, name) {
  const url = URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" }));
  const anchor = Object.assign(document.createElement("a"), { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
