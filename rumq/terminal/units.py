"""Figures for people: sizes, rates, ages, times. Each is a short text, the same on a terminal and in a pipe."""

from __future__ import annotations

from datetime import UTC, datetime

STEPS = (("d", 86_400.0), ("h", 3_600.0), ("m", 60.0))


def size(count: float) -> str:
    """Bytes: 512 B, 1.5 KiB, 20.0 GiB"""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def count(number: float) -> str:
    """1234567 as 1,234,567; a fraction with one digit behind the point"""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


def rate(number: float) -> str:
    """Things a second: 0, 0.4/s, 12,345/s"""
    if not number:
        return "0"
    return f"{number:,.1f}/s" if abs(number) < 100 else f"{number:,.0f}/s"


def age(seconds: float) -> str:
    """250 µs, 3.2 ms, 4.2 s, 12m 5s, 3h 20m, 41d 2h"""
    if seconds < 0:
        return f"-{age(-seconds)}"
    if 0 < seconds < 1:
        return f"{seconds * 1e6:.0f} µs" if seconds < 0.001 else f"{seconds * 1000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    for number, (unit, length) in enumerate(STEPS):
        if seconds >= length:
            below, step = STEPS[number + 1] if number + 1 < len(STEPS) else ("s", 1.0)
            whole, rest = divmod(seconds, length)
            return f"{whole:.0f}{unit} {rest // step:.0f}{below}"
    raise AssertionError(seconds)


def moment(time_us: float) -> str:
    """µs since 1970 as RFC 3339 in UTC, with milliseconds"""
    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown(value: object, unit: str) -> str:
    """unit: of the field, as the OpenAPI description has it"""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(shown(each, unit) for each in value) or "-"
    if not isinstance(value, int | float):
        return printable(str(value)) or "-"
    if unit == "bytes":
        return size(value)
    if unit == "bytes/s":
        return f"{size(value)}/s" if value else "0"
    if unit.endswith("/s"):
        return rate(value)
    if unit == "seconds":
        return age(value)
    if unit.startswith("µs since"):
        return moment(value) if value else "-"
    return count(value) if unit not in ("", "lsn") else f"{value:g}" if isinstance(value, float) else str(value)


def printable(text: str) -> str:
    """Text of clients, without what would command the terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
