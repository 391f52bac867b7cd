// Numbers, sizes, times and names as people read them. Unknown values are "–".

export const NONE = "–";
const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

// 1234567 -> "1,234,567"
export const count = (value) => (known(value) ? plain.format(value) : NONE);

// 1234567 -> "1.23 M"
export function short(value) {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e9) return `${digits(value / 1e9)} G`;
  if (size >= 1e6) return `${digits(value / 1e6)} M`;
  if (size >= 1e4) return `${digits(value / 1e3)} k`;
  return size >= 100 || Number.isInteger(value) ? plain.format(value) : digits(value);
}

// Three digits that count.
function digits(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.005) return "<0.01";
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export const rate = (value, unit = "/s") => (known(value) ? `${short(value)}${unit}` : NONE);

// 1536 -> "1.50 KiB"
export function bytes(value) {
  if (!known(value)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) { size /= 1024; unit += 1; }
  return unit === 0 ? `${plain.format(size)} B` : `${digits(size)} ${units[unit]}`;
}

export const byteRate = (value) => (known(value) ? `${bytes(value)}/s` : NONE);

// 93784 -> "1 d 2 h"; 0.00042 -> "420 µs"
export function duration(seconds) {
  if (!known(seconds)) return NONE;
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 0.001) return `${digits(seconds * 1e6)} µs`;
  if (size < 1) return `${digits(seconds * 1e3)} ms`;
  if (size < 60) return `${size < 10 ? digits(seconds) : Math.round(seconds)} s`;
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let left = Math.round(seconds);
  const found = [];
  for (const [name, length] of parts) {
    const some = Math.floor(left / length);
    if (some || found.length) found.push([some, name]);
    left -= some * length;
  }
  return found.slice(0, 2).filter(([some]) => some).map(([some, name]) => `${some} ${name}`).join(" ");
}

const clock = new Intl.DateTimeFormat("sv", {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
});
const hours = new Intl.DateTimeFormat("sv", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

// Microseconds since 1970 -> "2026-11-22 14:03:07", local; 0 is none.
export const time = (us) => (us ? clock.format(us / 1000) : NONE);
// The same without the day, if it is today's.
export function timeOfDay(us) {
  if (!us) return NONE;
  const when = new Date(us / 1000);
  return when.toDateString() === new Date().toDateString() ? hours.format(when) : clock.format(when);
}
export const ago = (us, now = Date.now()) => (us ? `${duration(Math.max(0, now / 1000 - us / 1e6))} ago` : NONE);

export const percent = (part, whole) => (known(part) && whole ? `${((100 * part) / whole).toFixed(0)} %` : NONE);

// "1 client", "3 clients"
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

// A figure of the broker by the unit at the end of its name: free_bytes 1536 -> "1.50 KiB", seconds 5400 -> "1 h 30 min".
export function figure(name, value) {
  if (typeof value !== "number") return null;
  if (/(^|_)bytes_per_second$/.test(name)) return byteRate(value);
  if (/_per_second$/.test(name)) return rate(value);
  if (/(^|_)bytes(_max|_min)?$/.test(name) || name === "free_wanted") return bytes(value);
  if (/(^|_)seconds(_max|_min)?$/.test(name)) return duration(value);
  if (/_us$/.test(name)) return time(value);
  return /^(shard|partition|port|pid|epoch|generation|reason|line|version|exit_status|signal)$/.test(name) ? null : count(value);
}
