"""Events for the operator: structlog, one line each, for a person on a terminal and as JSON anywhere else.

An event is `noun.verb` from docs/reference/events.md, the closed list; values are fields, never in the sentence,
and never a payload. Refuses to know what any event means. Events never stop the broker: where
the operator's end of the stream is gone, they are dropped. The newest are kept (`RING`).
"""

import os
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, cast

import msgspec

# structlog imports rich, where that is, for tracebacks that no event has: a tenth of the CPU of a broker's start.
_rich = sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
import structlog  # noqa: E402
from structlog.typing import EventDict, ExcInfo, FilteringBoundLogger, WrappedLogger  # noqa: E402

if _rich is None:
    del sys.modules["rich"]

from rumq.events.event_ring import EventRing  # noqa: E402

Renderer = Callable[[WrappedLogger, str, EventDict], str]
# Of a field, in characters: of an event about a client, which may have chosen it; of others; of an exception.
CLIENT_TEXT_MAX, TEXT_MAX, EXCEPTION_MAX = 200, 4000, 16_000
COLOURS = {"debug": 2, "info": 36, "warning": 33, "error": 31}
RING = EventRing(time.time_ns() // 1000)  # of this process, which one that is forked off does not share
os.register_at_fork(after_in_child=lambda: RING.begin(time.time_ns() // 1000))


class Lines:
    """Where events end: each is one write, so that lines of several processes do not mix."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            pass  # the terminal or the collector is gone, which is no reason to stop serving clients

    debug = info = warning = error = critical = exception = msg


_on_setup: list[Callable[[], None]] = []


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
        processors=[stamp, shorten, keep, human_renderer(colours=terminal)] if human else [stamp, shorten, as_json],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        context_class=dict,
        logger_factory=lambda *_: Lines(stream),
        # A logger made at import must follow this call, also when a test calls it again.
        cache_logger_on_first_use=False,
    )
    for call in _on_setup:
        call()


def get_logger(name: str) -> FilteringBoundLogger:
    """The logger of a floor, "rumq.net". On a warm path bind it once: `log.bind(client_id=...)`."""
    return cast(FilteringBoundLogger, structlog.get_logger(floor=name))


def stamp(_: WrappedLogger, level: str, event: EventDict) -> EventDict:
    """Put time, level, event and floor first, and turn an exception into its text."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    level = "error" if level == "exception" else level
    first = {"time": now, "level": level, "event": event.pop("event"), "floor": event.pop("floor", "rumq")}
    if exc_info := event.pop("exc_info", None):
        event["exception"] = exception_text(exc_info)
    return {**first, **event}


def exception_text(exc_info: bool | BaseException | ExcInfo) -> str:
    if isinstance(exc_info, BaseException):
        fault: BaseException | None = exc_info
    else:
        fault = exc_info[1] if isinstance(exc_info, tuple) else sys.exc_info()[1]
    return "".join(traceback.format_exception(fault)).rstrip() if fault else ""


def shorten(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Cut what is long: a client that is refused for 60 KB of client id must not write 60 KB to the operator's disk."""
    longest = CLIENT_TEXT_MAX if "client_id" in event or "peer" in event else TEXT_MAX
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = cut(value, EXCEPTION_MAX if key == "exception" else longest)
        elif isinstance(value, list | tuple):
            event[key] = [cut(each, longest) if isinstance(each, str) else each for each in value]
    return event


def cut(text: str, longest: int) -> str:
    """At most about `longest` characters of a text, with how many there were; all of them can be written as UTF-8."""
    if len(text) > longest:
        text = f"{text[:longest]}... ({len(text)} characters)"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def as_json(_: WrappedLogger, __: str, event: EventDict) -> str:
    """The line, which is kept, too."""
    return kept(event).decode()


def keep(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    kept(event)
    return event


def kept(event: EventDict) -> bytes:
    line = msgspec.json.encode(event, enc_hook=repr)
    RING.add(time.time_ns() // 1000, event["level"], event["event"], line)
    return line


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
