"""What keys do: views, orders, filters, the selected row, one client; and what is asked for it."""

import pytest

from rumq.admin import requests as q
from rumq.cli.top.keys import keys_of
from rumq.cli.top.state import ROWS_MAX, VIEWS, TopState
from rumq.errors import ConfigError

NAMES = [f"pump-{number}" for number in range(15)]


def pressed(state: TopState, *keys: str, names: list[str] = NAMES) -> list[bool]:
    """Whether each key asks anew."""
    return [state.key(key, 15, names) for key in keys]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"q", ["q"]), (b"\x1b", ["esc"]), (b"\x1b[A\x1b[B", ["up", "down"]), (b"\x1bOC", ["right"]),
        (b"\r\t\x7f", ["enter", "tab", "backspace"]),
        (b"\x1b[5~\x1b[6~x", ["page-up", "page-down", "x"]),
        (b"\x1b[99;3~a", ["a"]), ("ü".encode(), ["ü"]), (b"\xff", []),
        (b"\x03", ["ctrl-c"]),
    ],
)  # fmt: skip
def test_bytes_are_keys(data: bytes, keys: list[str]) -> None:
    assert list(keys_of(data)) == keys


def test_numbers_and_tab_choose_the_view() -> None:
    state = TopState()
    assert pressed(state, "3") == [True] and state.shown.name == "shards"
    assert pressed(state, "tab", "back-tab", "back-tab") == [True] * 3 and state.shown.name == "topics"
    pressed(state, "1", "left")
    assert state.shown.name == VIEWS[-1].name
    assert pressed(state, "9", "0", "z") == [False] * 3


def test_orders_are_of_the_view_and_the_brokers() -> None:
    state = TopState()
    assert state.request(15) == ("clients", q.Clients(sort="rate", limit=15))
    pressed(state, "s")
    assert state.request(15) == ("clients", q.Clients(sort="lag", limit=15))
    pressed(state, "2", "S")
    assert state.request(15) == ("topics", q.Topics(sort="topic", limit=15))
    pressed(state, "1")
    assert state.sort == "lag", "each view keeps its own"
    assert pressed(state, "3", "s") == [True, False]


def test_a_filter_is_typed_and_a_part_of_a_name_is_enough() -> None:
    state = TopState()
    assert pressed(state, "/", "p", "q", "backspace", "7") == [False] * 5, "q is a letter while one types"
    assert not state.has_quit and state.typing == "p7"
    assert pressed(state, "enter") == [True]
    assert state.request(9) == ("clients", q.Clients(client="*p7*", sort="rate", limit=9))
    assert pressed(state, "/", "x", "esc") == [False] * 3 and state.filter == "p7", "Esc gives up what was typed"
    assert pressed(state, "esc") == [True] and state.filter == ""
    pressed(state, "/", *"pump-?", "enter")
    assert state.request(9)[1] == q.Clients(client="pump-?", sort="rate", limit=9)
    pressed(state, "2", "/", *"plant/#", "enter")
    assert state.request(9)[1] == q.Topics(topic="plant/#", sort="records", limit=9)
    pressed(state, "6", "/", *"client", "enter")
    assert state.request(9)[1] == q.Events(event="*client*", level="info", limit=9)
    assert pressed(state, "3", "/") == [True, False] and state.typing is None


def test_a_client_is_selected_and_shown_and_left() -> None:
    state = TopState()
    pressed(state, "up", "down", "down", "j", "k")
    assert state.selected == 2
    assert pressed(state, "enter") == [True] and state.client == "pump-2"
    assert state.request(15) == ("client", q.OneClient(client="pump-2"))
    assert pressed(state, "esc") == [True] and state.client is None
    pressed(state, *["down"] * 50)
    assert state.selected == len(NAMES) - 1
    assert pressed(state, "enter", names=[]) == [False]


def test_pages_of_rows() -> None:
    state = TopState()
    assert pressed(state, "page-down") == [True] and state.offset == 15
    assert state.request(15)[1] == q.Clients(sort="rate", limit=15, offset=15)
    assert pressed(state, "page-down", names=NAMES[:3]) == [False], "the last page"
    assert pressed(state, "page-up", "page-up") == [True, False] and state.offset == 0
    pressed(state, "page-down", "home")
    assert state.offset == 0


def test_never_more_than_a_page_is_asked_for() -> None:
    state = TopState()
    for number in range(len(VIEWS)):
        pressed(state, str(number + 1))
        assert getattr(state.request(5000)[1], "limit", 0) <= ROWS_MAX


def test_pause_help_interval_and_quit() -> None:
    state = TopState()
    assert pressed(state, "p", " ") == [False, True], "who goes on sees the newest at once"
    pressed(state, "?")
    assert state.is_helping and pressed(state, "q") == [False] and not state.has_quit, "any key ends the help"
    pressed(state, "+")
    assert state.interval == 2.0
    pressed(state, *"-" * 20)
    assert state.interval == 0.2
    pressed(state, "ctrl-c")
    assert state.has_quit


def test_flags_begin_a_state() -> None:
    state = TopState.begun("topics", "rate", "plant/#", None, 2.0)
    assert state.request(5) == ("topics", q.Topics(topic="plant/#", sort="rate", limit=5)) and state.interval == 2.0
    with pytest.raises(ConfigError, match="--sort: size: expected one of rate, lag"):
        TopState.begun("clients", "size", "", None, 1.0)
    with pytest.raises(ConfigError, match="shards have one order"):
        TopState.begun("shards", "lag", "", None, 1.0)
