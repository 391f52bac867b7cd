"""Where a replay begins, as a subscriber types it: `$log/<from>/<filter>`, or user property `rumq-from`.

Knows no log: a place is "earliest", "latest", a time or an offset. Source: docs/reference/replay.md."""

from __future__ import annotations

from datetime import UTC, datetime

PREFIX = "$log/"
RETAINED = "retained@"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
ALLOWED = (
    "earliest, latest, -30s, -15m, -1h, -7d, a time like 2026-11-20T06:00:00Z, retained@ and any of these times, "
    "or an offset of one topic"
)

SHOWN_MAX = 80  # of what a client has typed: the sentence must fit into a packet
DIGITS_MAX = 19

Start = str | tuple[str, int]


class BadStart(ValueError):
    """The client's fault: what was seen, and what is allowed."""

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(text, why)
        self.text, self.why = text, why

    def __str__(self) -> str:
        return f"cannot replay from {shown(self.text)}{': ' + self.why if self.why else ''}; allowed: {ALLOWED}"


def shown(text: str) -> str:
    """What a client has typed, for a sentence."""
    return repr(text) if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]!r}..."


def parse_start(text: str, topic_filter: str, now_us: int) -> Start:
    """The place that `text` names: "earliest", "latest", ("time", µs since 1970), ("retained", likewise) or
    ("offset", n)."""
    if text.startswith(RETAINED):
        asked = text[len(RETAINED) :]
        if asked.startswith(RETAINED):
            raise BadStart(text)
        place = parse_start(asked, topic_filter, now_us)
        if isinstance(place, str) or place[0] != "time":
            raise BadStart(text, "what was retained is asked for as of a time")
        return "retained", place[1]
    if text in ("earliest", "latest"):
        return text
    if text.isascii() and text.isdigit():
        if "+" in topic_filter or "#" in topic_filter:
            raise BadStart(text, "an offset counts the messages of one topic, and the filter has a wildcard")
        if len(text) > DIGITS_MAX:
            raise BadStart(text, "the offset is too large")
        return "offset", int(text)
    if text[:1] == "-" and text[-1:] in UNITS and text[1:-1].isascii() and text[1:-1].isdigit():
        # More digits than that are before 1970 in any unit, and too many are no number to Python.
        ago = int(text[1 : 2 + DIGITS_MAX].rstrip("".join(UNITS)))
        return "time", max(0, now_us - ago * UNITS[text[-1]] * 1_000_000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadStart(text) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = moment.timestamp()
    if seconds < 0:
        raise BadStart(text, "before 1970")
    return "time", round(seconds * 1_000_000)


def split_replay(topic_filter: str) -> tuple[str, str] | None:
    """(from, filter) of a `$log/...` filter; None for any other."""
    if not topic_filter.startswith(PREFIX):
        return None
    start, _, rest = topic_filter[len(PREFIX) :].partition("/")
    if not rest:
        raise BadStart(start, f"{shown(topic_filter)} has no filter behind the place")
    return start, rest
