"""A progress bar on standard error, for what takes long: on a terminal only, or with --progress.

Cost: a call of the clock for each piece of work, a line ten times a second at most."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

DRAW_SECONDS, LINE_SECONDS = 0.1, 5.0  # between two bars on a terminal, between two lines elsewhere
FIRST_SECONDS = 0.3  # what is over sooner has no bar
BAR_WIDTH_MAX = 30


def add_progress_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="a progress bar on standard error, without a terminal a line every 5 s [on a terminal]",
    )


class Progress:
    """what: in a word; unit: bytes, records, ...; total: 0: not known

    is_on: None: if `out` is a terminal, and it takes longer than a moment"""

    def __init__(
        self, what: str, total: int, unit: str, *, is_on: bool | None = None, out: TextIO | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._what, self._total, self._unit, self._now = what, total, unit, now
        self._out = out if out is not None else sys.stderr
        self._is_terminal = self._out.isatty()
        self._is_on = is_on if is_on is not None else self._is_terminal
        self._done = 0
        self._began = now()
        soon = FIRST_SECONDS if is_on is None else 0.0
        self._next = self._began + (soon if self._is_terminal else LINE_SECONDS)
        self._is_drawn = False

    def advance(self, count: int) -> None:
        self._done += count
        if self._is_on and (now := self._now()) >= self._next:
            self._next = now + (DRAW_SECONDS if self._is_terminal else LINE_SECONDS)
            self._draw(now)

    def clear(self) -> None:
        """Before something else is printed; the next `advance` draws again."""
        if self._is_drawn and self._is_terminal:
            self._out.write("\r\x1b[K")
            self._out.flush()
            self._is_drawn = False

    def line(self, now: float, width: int) -> str:
        """Such as: verify  [#######---------]  45 %  1.2 GiB of 2.7 GiB  310.0 MiB/s  5 s left"""
        from rumq.terminal.units import age

        seconds = max(now - self._began, 1e-6)
        speed = self._done / seconds
        parts = [
            f"{self._amount(self._done)} of {self._amount(self._total)}" if self._total else self._amount(self._done)
        ]
        parts.append(f"{self._amount(speed)}/s")
        if self._total and speed:
            left = max(0.0, (self._total - self._done) / speed)
            parts.append(f"{age(float(round(left)))} left")
        if not self._total:
            return "  ".join([self._what, *parts])[:width]
        share = min(1.0, self._done / self._total)
        text = f"{100 * share:3.0f} %  " + "  ".join(parts)
        room = min(BAR_WIDTH_MAX, width - len(self._what) - len(text) - 7)
        filled = int(share * room)
        bar = f"[{'#' * filled}{'-' * (room - filled)}]  " if room >= 5 else ""
        return f"{self._what}  {bar}{text}"[:width]

    def _amount(self, count: float) -> str:
        from rumq.terminal.units import size

        return size(count) if self._unit == "bytes" else f"{count:,.0f} {self._unit}"

    def _draw(self, now: float) -> None:
        width = shutil.get_terminal_size().columns - 1 if self._is_terminal else 200
        text = self.line(now, width)
        self._out.write(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n")
        self._out.flush()
        self._is_drawn = True

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()
