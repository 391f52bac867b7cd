"""Kernel: the user properties that tell a subscriber where a message stands in the log, and who published it.

docs/reference/replay.md and docs/reference/publishers.md"""

from typing import Protocol


class NamesByNumber(Protocol):
    """Client ids by publisher number: of a partition, or of one chunk."""

    def get(self, number: int, default: bytes, /) -> bytes: ...


def pair(name: bytes, value: bytes) -> bytes:
    """One user property, encoded."""
    return b"\x26" + len(name).to_bytes(2, "big") + name + len(value).to_bytes(2, "big") + value


def rfc3339(ts_us: int) -> bytes:
    """Microseconds since 1970 as an RFC 3339 time in UTC, without a look at any time zone."""
    days = ts_us // 86_400_000_000
    rest = ts_us - days * 86_400_000_000
    # Howard Hinnant's civil-from-days: years begin in March, so a leap day comes last.
    z = days + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    day = doy - (153 * mp + 2) // 5 + 1
    month = mp + 3 if mp < 10 else mp - 9
    year = yoe + era * 400 + (1 if month <= 2 else 0)
    second, micro = divmod(rest, 1_000_000)
    return b"%04d-%02d-%02dT%02d:%02d:%02d.%06dZ" % (
        year, month, day, second // 3600, second // 60 % 60, second % 60, micro,
    )  # fmt: skip


def location(located: bytes, topic_offset: int, lsn: int, ts_us: int) -> bytes:
    """The user properties that tell a subscriber where a message stands in the log."""
    return (
        pair(b"rumq-offset", b"%d" % topic_offset)
        + pair(b"rumq-lsn", b"%d" % lsn)
        + pair(b"rumq-partition", located)
        + pair(b"rumq-time", rfc3339(ts_us))
    )


def published_by(publishers: NamesByNumber, number: int) -> bytes:
    """The user property that tells a subscriber who published; empty where the log does not name a publisher."""
    name = publishers.get(number, b"")
    return pair(b"rumq-publisher", name) if name else b""
