"""Events for the operator: structlog, one line each, for a person on a terminal and as JSON anywhere else.

An event is `noun.verb` from docs/reference/events.md, the closed list; values are fields, never in the sentence,
and never a payload. Refuses to know what any event means. Events never stop the broker: where
the operator's end of the stream is gone, they are dropped. The newest are kept (`event_lines.RING`).
"""

import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal, TextIO, cast

import msgspec

# structlog imports rich, where that is, for tracebacks that no event has: a tenth of the CPU of a broker's start.
_rich = sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
import structlog  # noqa: E402
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger  # noqa: E402

if _rich is None:
    del sys.modules["rich"]

from rumq.events.event_lines import kept, line_of, shorten, stamped  # noqa: E402
from rumq.events.event_ring import LEVELS  # noqa: E402

Renderer = Callable[[WrappedLogger, str, EventDict], str]
COLOURS = {"debug": 2, "info": 36, "warning": 33, "error": 31}
Teller = Callable[[str, dict[str, Any]], object]  # writes an event: its name and its fields


class Lines:
    """Where events end: each is one write, so that lines of several processes do not mix."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bytes = getattr(stream, "buffer", None)  # below it, which takes a line without a detour by text

    def put(self, line: bytes) -> None:
        """Write a line that has no end yet."""
        if self._bytes is None:
            self.msg(line.decode())
            return
        try:
            self._bytes.write(line + b"\n")
            self._bytes.flush()
        except (OSError, ValueError):
            pass  # as in `msg`

    def msg(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass  # the terminal or the collector is gone, which is no reason to stop serving clients

    debug = info = warning = error = critical = exception = msg


_on_setup: list[Callable[[], None]] = []
_json_lines: list[tuple[Lines, int]] = []  # where events go as JSON, and the least level; empty: structlog has them


def when_set_up(call: Callable[[], None]) -> None:
    """Call back at each `setup_events`: loggers that were made before go elsewhere."""
    _on_setup.append(call)


def setup_events(
    format: Literal["auto", "human", "json"] = "auto", level: str = "info", stream: TextIO | None = None
) -> None:
    """Send events of `level` and above to `stream` [standard error]; call once, before the first event.

    format: "auto" is "human" where the stream is a terminal, "json" elsewhere
    """
    stream = sys.stderr if stream is None else stream
    terminal = stream.isatty()
    human = format == "human" or (format == "auto" and terminal)
    structlog.configure(
        processors=[stamp, shorter, keep, human_renderer(colours=terminal)] if human else [stamp, shorter, as_json],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        context_class=dict,
        logger_factory=lambda *_: Lines(stream),
        # A logger made at import must follow this call, also when a test calls it again.
        cache_logger_on_first_use=False,
    )
    _json_lines[:] = [] if human else [(Lines(stream), LEVELS[level])]
    for call in _on_setup:
        call()


def teller(floor: str, level: str) -> Teller:
    """What writes the events of a floor that have this level, until events are set up again.

    As the logger of the floor does, and without its layers where lines are JSON: they are nine tenths of its work."""
    if not _json_lines:
        method = getattr(get_logger(floor).bind(), level)
        return lambda name, fields: method(name, **fields)
    lines, least = _json_lines[0]
    if LEVELS[level] < least:
        return lambda name, fields: None
    return lambda name, fields: lines.put(line_of(level, name, floor, fields))


def get_logger(name: str) -> FilteringBoundLogger:
    """The logger of a floor, "rumq.net". On a warm path bind it once: `log.bind(client_id=...)`."""
    return cast(FilteringBoundLogger, structlog.get_logger(floor=name))


def stamp(_: WrappedLogger, level: str, event: EventDict) -> EventDict:
    """Put time, level, event and floor first, and turn an exception into its text."""
    level = "error" if level == "exception" else level
    return stamped(time.time_ns() // 1000, level, event.pop("event"), event.pop("floor", "rumq"), dict(event))


def shorter(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    found = dict(event)
    shorten(found)
    return found


def as_json(_: WrappedLogger, __: str, event: EventDict) -> str:
    """The line, which is kept, too."""
    return kept(time.time_ns() // 1000, dict(event)).decode()


def keep(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    kept(time.time_ns() // 1000, dict(event))
    return event


def human_renderer(*, colours: bool) -> Renderer:
    """`22:31:23.120 info    client.connected     client_id=pump-7`, local time, an exception below it."""

    def render(_: WrappedLogger, __: str, event: EventDict) -> str:
        clock = datetime.fromisoformat(event.pop("time")).astimezone().strftime("%H:%M:%S.%f")[:-3]
        level, name, exception = event.pop("level"), event.pop("event"), event.pop("exception", "")
        event.pop("floor")
        head = f"{clock} {level:<7} {name:<21}"
        if colours:
            head = f"\x1b[{COLOURS.get(level, 0)}m{head}\x1b[0m"
        fields = " ".join(f"{key}={shown(value)}" for key, value in event.items())
        return f"{head} {fields}".rstrip() + (f"\n{visible(exception)}" if exception else "")

    return render


def shown(value: Any) -> str:
    """A field on one line. What a client chose is quoted where it could pass for something else."""
    text = str(value)
    if isinstance(value, str) and (not text.isprintable() or not text or set(text) & set(' "=')):
        return visible(msgspec.json.encode(text).decode())
    return visible(text)


def visible(text: str) -> str:
    """A text with nothing in it that commands a terminal or turns its line around: C0, C1 and bidirectional characters,
    and what has no width, are escaped; ends of lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else escaped(each) for each in text)


def escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
