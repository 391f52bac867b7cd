"""`rumqd top` in a terminal, and without one, over the socket and over REST."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import rumqd
from tests.cli.terminal import Terminal
from tests.gateway.conftest import Gateway, started

HIDE, SHOW, MAIN_SCREEN = b"\x1b[?25l", b"\x1b[?25h", b"\x1b[?1049l"
Open = Callable[..., Terminal]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = started(tmp_path_factory.mktemp("top"))
    (made.broker.data.parent / "token").write_text(made.secrets["reader"])
    (made.broker.data.parent / "token").chmod(0o600)
    for name in ("pump-1", "valve-1"):
        port = str(made.broker.address.port)
        words = ("sub", "-p", port, "plant/#", "-q", "1", "-i", name, "--session-expiry", "3600", "-W", "1")
        assert rumqd(*words).status == 0
    assert made.publish({"topic": "plant/7", "payload": "21.5"}).status == 200
    yield made
    made.broker.end()


@pytest.fixture
def terminal() -> Iterator[Open]:
    opened: list[Terminal] = []

    def begin(*words: str, **more: int) -> Terminal:
        opened.append(Terminal("top", *words, "--interval", "0.2", **more))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


def over(gateway: Gateway, kind: str) -> tuple[str, ...]:
    data = gateway.broker.data
    url = ("--url", f"http://127.0.0.1:{gateway.port}", "--token-file", str(data.parent / "token"))
    return ("--data", str(data)) if kind == "socket" else url


@pytest.mark.parametrize("kind", ["socket", "rest"])
def test_keys_switch_sort_filter_and_quit(gateway: Gateway, terminal: Open, kind: str) -> None:
    shown = terminal(*over(gateway, kind))
    shown.expect(r"rumq .* 1 shards .*well")
    shown.expect(r"by rate(.|\n)*pump-1(.|\n)*q quit")
    shown.key("s")
    shown.expect(r"by lag\s+client.*behind\*")
    shown.key("/valve\r")
    text = shown.expect(r"by lag /valve\s+client[^\n]+\s+valve-1(.|\n)*?q quit")
    assert "pump-1" not in text.split("by lag /valve")[-1], "one row is left"
    shown.key("\r")
    shown.expect(r"client_id +valve-1")
    shown.key("\x1b")
    shown.expect(r"by lag")
    shown.key("2")
    shown.expect(r"by records\s+topic(.|\n)*plant/7 ")
    shown.key("6")
    shown.expect(r"client\.connected")
    shown.key("q")
    assert shown.end() == 0
    assert HIDE in shown.raw and shown.raw.rfind(SHOW) > shown.raw.rfind(HIDE) and MAIN_SCREEN in shown.raw


def test_it_follows_the_size_of_the_terminal(gateway: Gateway, terminal: Open) -> None:
    shown = terminal(*over(gateway, "socket"))
    first = shown.expect(r"p pause")
    assert max(map(len, first.splitlines())) <= 80 and len(first.splitlines()) == 24
    shown.resize(10, 120)
    shown.expect(r"by rate {40}")
    shown.key("q")
    assert shown.end() == 0


@pytest.mark.parametrize("way", ["ctrl-c", "sigterm"])
def test_it_leaves_the_terminal_as_it_was(gateway: Gateway, terminal: Open, way: str) -> None:
    shown = terminal(*over(gateway, "socket"))
    shown.expect(r"p pause")
    if way == "ctrl-c":
        shown.key("\x03")
    else:
        shown.process.send_signal(signal.SIGTERM)
    assert shown.end() == 0 and MAIN_SCREEN in shown.raw


@pytest.mark.parametrize("kind", ["socket", "rest"])
def test_without_a_terminal_it_prints_one_frame_as_text(gateway: Gateway, kind: str) -> None:
    ended = rumqd("top", *over(gateway, kind), "--rows", "5", env={"COLUMNS": "100"})
    assert (ended.status, ended.err) == (0, "") and "\x1b" not in ended.out
    lines = ended.out.splitlines()
    assert lines[0].startswith("rumq ") and lines[0].endswith("well") and "pump-1" in ended.out


def test_nobody_there_is_an_error_at_once(tmp_path: Path, terminal: Open) -> None:
    ended = rumqd("top", "--data", str(tmp_path))
    assert ended.status == 1 and "no broker answers" in ended.err and not ended.out
    shown = terminal("--data", str(tmp_path))
    shown.expect("no broker answers")
    assert shown.end() == 1 and HIDE not in shown.raw


def test_without_rich_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    from rumq.cli.main import main

    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["top"]) == 1 and "pip install 'rumq[terminal]'" in capsys.readouterr().err
