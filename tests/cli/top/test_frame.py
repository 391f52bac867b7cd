"""Frames on 80 columns and 24 lines, and on other screens; a function of what is known."""

import msgspec
import pytest

from rumq.admin import answers as a
from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.admin.operations import OPERATIONS
from rumq.cli.top.board import Board
from rumq.cli.top.frame import console_of, rows_that_fit, whole
from rumq.cli.top.samples import BARS
from rumq.cli.top.state import VIEWS, TopState
from tests.cli.top.world import CLIENTS, FakeSource, client, refreshed


def drawn(board: Board, state: TopState, width: int = 80, height: int = 24) -> list[str]:
    console = console_of(width=width, height=height, force_terminal=False)
    with console.capture() as text:
        console.print(whole(board, state, console), end="")
    return [line.rstrip() for line in text.get().removesuffix("\n").split("\n")]


def screen(
    state: TopState | None = None, source: FakeSource | None = None, width: int = 80, height: int = 24
) -> list[str]:
    state = state or TopState()
    return drawn(refreshed(state, rows_that_fit(height), source), state, width, height)


def test_a_frame_fills_80_by_24_and_no_more() -> None:
    lines = screen()
    assert len(lines) == 24 and all(len(line) <= 80 for line in lines)
    assert lines[0] == "rumq 1.2.3  up 1h 2m  2 shards  fake  well"
    assert "1,000/s" in lines[1] and "97.7 KiB/s" in lines[1] and lines[1].split("ack")[0].rstrip().endswith("█")
    assert lines[3].startswith("clients 4  sessions 6  behind 2,468  lost 10")
    assert lines[4].startswith("disk 40.0 GiB free (40 %), oldest segments go in 12h 0m  log 5.0 GiB")
    assert lines[6].startswith("1 clients 2 topics") and "by rate" in lines[6]
    assert lines[7].split() == ["client", "msg/s*", "behind", "age", "bytes/s", "flight", "lost"]
    assert [line.split()[0] for line in lines[8:23]] == [f"pump-{number}" for number in range(15)]
    assert lines[23].startswith("q quit  ? help") and "and 85 more rows" in lines[23]


@pytest.mark.parametrize(("width", "height"), [(40, 10), (80, 24), (132, 50), (250, 70)])
@pytest.mark.parametrize("view", range(len(VIEWS)))
def test_every_view_fits_every_screen(view: int, width: int, height: int) -> None:
    source = FakeSource()
    many = range(200)
    topic = {"stream": "main", "partition": 0, "records": 7, "records_per_second": 1.0}
    group = {"filter": "a", "members": 1, "behind_records": 7, "returned_records": 0, "clients": []}
    event = {"cursor": "", "level": "info", "event": "client.connected", "source": "shard", "shard": 0}
    plain = {
        "topics": [{"topic": "x" * n, **topic} for n in many],
        "shards": [],
        "partitions": [],
        "groups": [{"group": f"$share/g/{n}", **group} for n in many],
        "events": [{"time_us": n, "fields": {"n": "y" * n}, **event} for n in many],
    }
    for name, rows in plain.items():
        more = {"cursor": ""} if name == "events" else {}
        source.answers[name] = msgspec.convert({name: rows, **more}, OPERATIONS[name].answer)
    lines = screen(TopState(view=view), source, width, height)
    assert len(lines) == height and max(map(len, lines)) <= width
    assert lines[-1].startswith("q quit")


def test_a_narrow_screen_keeps_the_name_and_the_column_of_the_order() -> None:
    state = TopState.begun("clients", "lost", "", None, 1.0)
    assert screen(state, width=40)[7].split() == ["client", "msg/s", "lost*"]


def test_what_a_client_is_called_cannot_command_the_terminal() -> None:
    CLIENTS[0], kept = client("\x1b[2J\x07[bold]ü", rate=1e6), CLIENTS[0]
    try:
        assert screen()[8].startswith("\\x1b[2J\\x07[bold]ü")
    finally:
        CLIENTS[0] = kept


def test_what_is_wrong_is_said_first() -> None:
    state, source = TopState(), FakeSource()
    board = refreshed(state, source=source)
    source.fails = "shard 1 does not answer"
    import trio

    trio.run(board.refresh, state, 15)
    lines = drawn(board, state)
    assert lines[0].endswith("fake  shard 1 does not answer") and lines[-1].startswith("no answer")
    assert lines[8].startswith("pump-0"), "what was known stays"


def test_one_client_in_detail_is_what_ask_says() -> None:
    source = FakeSource()
    source.answers["client"] = a.ClientDetail(
        found=True,
        client=client("pump-7"),
        subscriptions=[r.SubscriptionRow(filter="a/#", kind="live", qos=1)],
    )
    lines = screen(TopState(client="pump-7"), source)
    text = "\n".join(lines)
    assert (
        any(line.split()[:2] == ["client_id", "pump-7"] for line in lines)
        and "a/#     live    1" in text
        and "Esc back" in lines[-1]
    )
    assert source.asked[-1] == ("client", q.OneClient(client="pump-7"))
    source.answers["client"] = a.ClientDetail(found=False)
    assert "there is no session with client id pump-7" in "\n".join(screen(TopState(client="pump-7"), source))


def test_help_filter_and_pause_are_seen() -> None:
    assert "quit" in "\n".join(screen(TopState(is_helping=True))[7:-1])
    state = TopState(is_paused=True)
    state.filters["clients"] = "pump"
    lines = screen(state)
    assert lines[0].endswith("paused") and lines[6].endswith("by rate /pump")
    state.typing = "pum"
    assert "/pum_" in screen(state)[6] and "client id with * and ?" in screen(state)[-1]


def test_a_refresh_asks_for_what_is_shown_and_slowly_for_the_rest() -> None:
    source = FakeSource()
    refreshed(TopState(), source=source, times=6)
    asked = [name for name, _ in source.asked]
    assert asked.count("metrics") == asked.count("clients") == 6 and asked.count("status") == 2


def test_a_terminal_without_utf_8_has_other_bars() -> None:
    import io

    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    state = TopState()
    console = console_of(file=out, width=80, height=24, force_terminal=False)
    with console.capture() as text:
        console.print(whole(refreshed(state), state, console))
    assert not set(text.get()) & set(BARS) and "@" in text.get()
