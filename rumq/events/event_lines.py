"""Events as lines of JSON: stamped, cut to a bounded length, kept in `RING`.

Each connection has one at least, so this is on the way of a connect."""
# compiled: warm

from __future__ import annotations

import os
import sys
import traceback
from datetime import UTC, datetime
from time import time_ns
from typing import Any

import msgspec

from rumq.events.event_ring import EventRing

# Of a field, in characters: of an event about a client, which may have chosen it; of others; of an exception.
CLIENT_TEXT_MAX, TEXT_MAX, EXCEPTION_MAX = 200, 4000, 16_000
RING = EventRing(time_ns() // 1000)  # of this process, which one that is forked off does not share
os.register_at_fork(after_in_child=lambda: RING.begin(time_ns() // 1000))
_encoder = msgspec.json.Encoder(enc_hook=repr)


class Stamp:
    """The time as text. What changes once a second is made once a second."""

    def __init__(self) -> None:
        self._second = -1
        self._text = ""

    def text(self, time_us: int) -> str:
        """2026-11-28T21:41:33.051Z. time_us: µs since 1970"""
        second = time_us // 1_000_000
        if second != self._second:
            self._text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
            self._second = second
        milliseconds = time_us // 1000 % 1000
        return f"{self._text}.{milliseconds:03d}Z"


_stamp = Stamp()


def stamped(time_us: int, level: str, name: str, floor: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The event with time, level, name and floor first, an exception as its text."""
    event: dict[str, Any] = {"time": _stamp.text(time_us), "level": level, "event": name, "floor": floor}
    event.update(fields)
    if "exc_info" in event:
        exc_info = event.pop("exc_info")
        if exc_info:
            event["exception"] = exception_text(exc_info)
    return event


def exception_text(exc_info: Any) -> str:
    """exc_info: an exception, what `sys.exc_info` returned, or True for the one that is being handled"""
    if isinstance(exc_info, BaseException):
        fault: BaseException | None = exc_info
    else:
        fault = exc_info[1] if isinstance(exc_info, tuple) else sys.exc_info()[1]
    return "".join(traceback.format_exception(fault)).rstrip() if fault else ""


def shorten(event: dict[str, Any]) -> None:
    """Cut what is long: a client that is refused for 60 KB of client id must not write 60 KB to the operator's disk."""
    longest = CLIENT_TEXT_MAX if "client_id" in event or "peer" in event else TEXT_MAX
    for key, value in event.items():
        if isinstance(value, str):
            if len(value) > longest or not value.isascii():
                event[key] = cut(value, EXCEPTION_MAX if key == "exception" else longest)
        elif isinstance(value, list | tuple):
            event[key] = [cut(each, longest) if isinstance(each, str) else each for each in value]


def cut(text: str, longest: int) -> str:
    """At most about `longest` characters of a text, with how many there were; all of them can be written as UTF-8."""
    if len(text) > longest:
        text = f"{text[:longest]}... ({len(text)} characters)"
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def kept(time_us: int, event: dict[str, Any]) -> bytes:
    """The event as a line without its end, which is kept, too."""
    line = bytes(memoryview(_encoder.encode(event)))  # a copy, for the encoder allocates half as much again
    RING.add(time_us, event["level"], event["event"], line)
    return line


def line_of(level: str, name: str, floor: str, fields: dict[str, Any]) -> bytes:
    """An event from its parts to the line, which is kept."""
    time_us = time_ns() // 1000
    event = stamped(time_us, level, name, floor, fields)
    shorten(event)
    return kept(time_us, event)
