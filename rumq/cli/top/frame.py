"""One frame: the overview, the view, the line of keys. A function of what is known and of the size of the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from rumq.admin import answers as a
from rumq.cli.ask.tables import text_of
from rumq.cli.top.board import Board
from rumq.cli.top.overview import BAD, DIM, LINES, TITLE, overview
from rumq.cli.top.rows import name_of, rows_of, table_of
from rumq.cli.top.samples import ASCII_BARS, BARS
from rumq.cli.top.state import VIEWS, TopState

AROUND = LINES + 4  # the overview, an empty line, the tabs, the heading, the keys
HELP = """\
1 to 6, Tab   clients, topics, shards, partitions, groups, events
s, S          next, previous order; * marks its column
/             filter: type, Enter; Esc clears it
up, down      select; Enter shows the client, Esc goes back
PgDn, PgUp    more rows; Home the first
p, space      pause, go on
+, -          longer, shorter interval
q             quit

in, out   messages published and delivered; ack: publish to acknowledgement, dlv: publish to delivery
behind    records that the slowest client has not read; lost: messages that were not delivered"""


def rows_that_fit(height: int) -> int:
    return max(1, height - AROUND)


def frame(board: Board, state: TopState, console: Console) -> RenderableType:
    """As high as the screen."""
    width, height = console.size
    bars = BARS if console.encoding.startswith("utf") else ASCII_BARS
    parts: list[RenderableType] = [*overview(board, state, width, bars), Text(""), tabs(board, state)]
    room = rows_that_fit(height)
    if state.is_helping:
        parts += [Text(each, no_wrap=True) for each in ["", *HELP.splitlines()][: room + 1]]
    elif state.client is not None:
        parts += [Text(each, no_wrap=True, overflow="ellipsis") for each in details(board, state)][: room + 1]
    else:
        rows = rows_of(board.answer, state)[:room]
        parts.append(table_of(rows, state, width))
    return Group(*parts)


def whole(board: Board, state: TopState, console: Console) -> RenderableType:
    """The frame, filled up to the last line, which has the keys."""
    lines = console.render_lines(frame(board, state, console), pad=False)
    room = max(0, console.size.height - 1 - len(lines))
    return Group(frame(board, state, console), *(Text("") for _ in range(room)), keys_line(board, state))


def tabs(board: Board, state: TopState) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis")
    for number, view in enumerate(VIEWS):
        text.append(f"{number + 1} {view.name}", "reverse" if number == state.view else DIM)
        text.append(" ")
    if state.client is not None:
        return text
    if state.sort:
        text.append(f" by {state.sort}")
    if state.typing is not None:
        text.append(f" /{state.typing}_", TITLE)
    elif state.filter:
        text.append(f" /{state.filter}", TITLE)
    return text


def details(board: Board, state: TopState) -> Iterator[str]:
    """One client, in the words of `rumqd ask client`."""
    answer = board.answer
    if not isinstance(answer, a.ClientDetail) or board.question != "client":
        yield f"{state.client} ..."
    elif not answer.found:
        yield f"there is no session with client id {state.client}"
    else:
        yield from two_columns([*text_of(answer)])


def two_columns(lines: Sequence[str]) -> Iterator[str]:
    """Names and values side by side, up to the first list, without what there is not: a client fits on 24 lines."""
    end = lines.index("") if "" in lines else len(lines)
    told = [each for each in lines[:end] if not each.endswith("  -")]
    half = (len(told) + 1) // 2
    for left, right in zip(told[:half], [*told[half:], ""], strict=False):
        yield f"{left[:38]:<40}{right}".rstrip()
    yield from (each for each in lines[end:] if not each.endswith(": none"))


def keys_line(board: Board, state: TopState) -> Text:
    text = Text(no_wrap=True, overflow="ellipsis", style=DIM)
    if state.typing is not None:
        text.append(f"{state.shown.filter_is}; Enter, Esc")
        return text
    words = [
        "q quit",
        "? help",
        "/ filter",
        "s order",
        "Enter detail" if state.client is None else "Esc back",
        "p pause",
    ]
    left = getattr(board.answer, "left_out", 0)
    if board.problem:
        text.append("no answer  ", BAD)
    text.append("  ".join(words))
    if left and state.client is None:
        text.append(f"  and {left:,} more rows")
    return text


def names_on_screen(board: Board, state: TopState, height: int) -> list[str]:
    return [name_of(row) for row in rows_of(board.answer, state)[: rows_that_fit(height)]]


def console_of(**more: Any) -> Console:
    return Console(highlight=False, emoji=False, markup=False, **more)
