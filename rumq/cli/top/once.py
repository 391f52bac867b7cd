"""One frame as plain text: for a pipe, a log, or a look without a terminal."""

from __future__ import annotations

import shutil
import sys

import trio

from rumq.cli.ask.source import AskFailed, Source
from rumq.cli.top.board import Board
from rumq.cli.top.frame import AROUND, console_of, frame
from rumq.cli.top.state import TopState

BETWEEN_SECONDS = 1.0  # rates need two samples


async def print_frame(source: Source, state: TopState, rows: int) -> int:
    """Returns the exit status. raises: AskFailed"""
    board = Board(source, trio.current_time)
    try:
        for sample in range(2):
            if sample:
                await trio.sleep(BETWEEN_SECONDS)
            await board.refresh(state, rows)
            if board.problem:
                raise AskFailed(board.problem)
    finally:
        with trio.CancelScope(shield=True):
            await source.close()
    width = shutil.get_terminal_size((100, 0)).columns
    console = console_of(file=sys.stdout, width=width, height=rows + AROUND, force_terminal=False, no_color=True)
    with console.capture() as text:
        console.print(frame(board, state, console))
    for each in text.get().rstrip("\n").split("\n"):
        print(each.rstrip())
    return 0
