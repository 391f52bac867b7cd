"""`rumqd top` as a picture: the frames of a live broker, the last of them as SVG."""

from __future__ import annotations

import io
import re
from pathlib import Path

import trio
from rich.console import Console

from rumq.cli.ask.socket_source import SocketSource
from rumq.cli.top.board import Board
from rumq.cli.top.frame import console_of, rows_that_fit, whole
from rumq.cli.top.state import TopState

WIDTH, HEIGHT = 80, 20
SHOWN_AS = "/var/lib/rumq"  # in place of a temporary directory
# The page that shows the picture loads nothing from other hosts: the viewer's own fonts do.
REMOTE_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.S)
OWN, FONTS = "font-family: Fira Code, monospace", "font-family: Fira Code, ui-monospace, monospace"
ID = "rumqd-top"  # of the styles in the file, which would be another one each time


def take_top(data: Path, into: Path, seconds: int) -> None:
    """seconds: of history in its plots"""
    console = console_of(file=io.StringIO(), width=WIDTH, height=HEIGHT, record=True, force_terminal=True)
    trio.run(_draw, data, console, seconds)
    into.write_text(REMOTE_FONTS.sub("", console.export_svg(title="rumqd top", unique_id=ID)).replace(OWN, FONTS))


async def _draw(data: Path, console: Console, seconds: int) -> None:
    source = SocketSource(str(data))
    board, state = Board(source, trio.current_time), TopState.begun("clients", "lag", "", None, 1.0)
    source.name = SHOWN_AS
    try:
        for _ in range(seconds):
            await board.refresh(state, rows_that_fit(HEIGHT))
            assert not board.problem, board.problem
            await trio.sleep(1)
        console.print(whole(board, state, console))
    finally:
        await source.close()
