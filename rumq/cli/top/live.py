"""The terminal: draws frames, reads keys, follows changes of its size, and is left as it was found."""

from __future__ import annotations

import os
import signal
import sys
import termios
import tty
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import trio
from rich.console import Console
from rich.live import Live

from rumq.cli.ask.source import AskFailed, Source
from rumq.cli.top.board import Board
from rumq.cli.top.frame import console_of, names_on_screen, rows_that_fit, whole
from rumq.cli.top.keys import keys_of
from rumq.cli.top.state import TopState

SIGNALS = (signal.SIGWINCH, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


async def run_live(source: Source, state: TopState) -> int:
    """Until the user quits; returns the exit status. raises: AskFailed if nobody answers at the start"""
    board = Board(source, trio.current_time)
    console = console_of()
    try:
        await board.refresh(state, rows_that_fit(console.size.height))
        if board.problem:
            raise AskFailed(board.problem)
        # Signals first: from here on none of them leaves the terminal as it is.
        with (
            trio.open_signal_receiver(*SIGNALS) as signals,
            cbreak(sys.stdin.fileno()),
            Live(console=console, screen=True, auto_refresh=False, transient=True) as live,
        ):
            await Screen(board, state, console, live).run(signals)
    finally:
        with trio.CancelScope(shield=True):
            await source.close()
    return 0


@contextmanager
def cbreak(descriptor: int) -> Iterator[None]:
    """Keys come one by one, without echo and signals; as it was, at the end."""
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSANOW)
    after = termios.tcgetattr(descriptor)
    after[1] = before[1]  # output as before: new lines return
    termios.tcsetattr(descriptor, termios.TCSANOW, after)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class Screen:
    def __init__(self, board: Board, state: TopState, console: Console, live: Live) -> None:
        self._board, self._state, self._console, self._live = board, state, console, live
        self._ask = trio.Event()  # to ask before the interval is over

    async def run(self, signals: AsyncIterator[int]) -> None:
        self._draw()
        async with trio.open_nursery() as nursery:
            self._scope = nursery.cancel_scope
            nursery.start_soon(self._obey, signals)
            nursery.start_soon(self._keys)
            nursery.start_soon(self._refresh)

    def _draw(self) -> None:
        self._live.update(whole(self._board, self._state, self._console), refresh=True)

    async def _refresh(self) -> None:
        while True:
            with trio.move_on_after(self._state.interval):
                await self._ask.wait()
            if self._state.is_paused and not self._ask.is_set():
                continue
            self._ask = trio.Event()
            await self._board.refresh(self._state, rows_that_fit(self._console.size.height))
            self._draw()

    async def _keys(self) -> None:
        descriptor = sys.stdin.fileno()
        while True:
            await trio.lowlevel.wait_readable(descriptor)
            data = os.read(descriptor, 1024)
            if not data:  # the terminal is gone
                self._scope.cancel()
                return
            for key in keys_of(data):
                height = self._console.size.height
                names = names_on_screen(self._board, self._state, height)
                if self._state.key(key, rows_that_fit(height), names):
                    self._ask.set()
            if self._state.has_quit:
                self._scope.cancel()
                return
            self._draw()

    async def _obey(self, signals: AsyncIterator[int]) -> None:
        async for number in signals:
            if number != signal.SIGWINCH:
                self._scope.cancel()
                return
            self._ask.set()  # more rows may fit
            self._draw()
