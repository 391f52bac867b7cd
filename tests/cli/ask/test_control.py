"""What an operator controls a broker with, by command: nine operations, each over the socket and over REST."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ENVIRONMENT, SECONDS_MAX, Ended, command, rumqd
from tests.cli.terminal import Terminal
from tests.gateway.conftest import Gateway, started

pytestmark = pytest.mark.parametrize("over", ["socket", "rest"])


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = started(tmp_path, shards=2)
    (tmp_path / "token").write_text(made.secrets["ops"])
    (tmp_path / "token").chmod(0o600)
    yield made
    made.broker.end()


def where(gateway: Gateway, over: str) -> tuple[str, ...]:
    data = gateway.broker.data
    url = ("--url", f"http://127.0.0.1:{gateway.port}", "--token-file", str(data.parent / "token"))
    return ("--data", str(data)) if over == "socket" else url


def ask(gateway: Gateway, over: str, *words: str) -> Any:
    done = rumqd("ask", *words, *where(gateway, over), "--json")
    assert (done.status, done.err) == (0, ""), done
    return json.loads(done.out)


def refused(gateway: Gateway, over: str, *words: str) -> Ended:
    done = rumqd("ask", *words, *where(gateway, over))
    assert (done.status, done.out) == (1, "")
    return done


@contextmanager
def subscribed(port: str) -> Iterator[subprocess.Popen[str]]:
    """`rumqd sub` as pump-7, which is gone behind the block whatever happens in it."""
    words = command("sub", "-p", port, "plant/#", "-q", "1", "-i", "pump-7", "--json")
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_nine_operations_answer(gateway: Gateway, over: str) -> None:
    port = str(gateway.broker.address.port)
    with subscribed(port) as subscriber:
        gateway.broker.heard(lambda event: event["event"] == "client.connected" and event["client_id"] == "pump-7")
        assert rumqd("pub", "-p", port, "plant/7/temp", "-m", "21.5", "-q", "1", "-r").status == 0
        assert subscriber.stdout is not None and json.loads(subscriber.stdout.readline())["payload"] == "21.5"

        assert ask(gateway, over, "ping") == {"missing": [], "shards": 2}
        assert [row["client_id"] for row in ask(gateway, over, "clients", "--client", "pump-*")["clients"]] == [
            "pump-7"
        ]
        assert [row["topic"] for row in ask(gateway, over, "topics")["topics"]] == ["plant/7/temp"]
        detail = ask(gateway, over, "client", "--client", "pump-7")
        assert detail["found"] and detail["subscriptions"][0]["filter"] == "plant/#"
        (row,) = ask(gateway, over, "subscribers", "--topic", "plant/7/temp")["subscribers"]
        assert (row["client_id"], row["filter"], row["qos"], row["connected"]) == (
            "pump-7",
            "plant/#",
            1,
            True,
        )
        assert ask(gateway, over, "subscribers", "--topic", "mill/1")["subscribers"] == []
        status = ask(gateway, over, "status")
        assert (status["shards"], status["connected"], status["retained"]) == (2, 1, 1)
        prepared = ask(gateway, over, "prepare", "--seconds", "600")
        assert prepared["connected"] == 1 and prepared["token"]
        assert ask(gateway, over, "disconnect", "--client", "pump-7")["disconnected"] == 1
        assert subscriber.wait(SECONDS_MAX) == 1
    wrong = refused(gateway, over, "shutdown", "--token", "0" * 16)
    assert "not that of the last `prepare`" in wrong.err
    token = ask(gateway, over, "prepare")["token"]
    assert ask(gateway, over, "shutdown", "--token", token)["done"] == 1
    assert gateway.broker.process.wait(SECONDS_MAX) == 0, "graceful: as SIGTERM"


def test_a_shutdown_that_is_not_graceful_is_a_kill_and_keeps_what_was_acknowledged(gateway: Gateway, over: str) -> None:
    port = str(gateway.broker.address.port)
    assert rumqd("pub", "-p", port, "plant/7", "-m", "21.5", "-q", "1").status == 0
    assert ask(gateway, over, "shutdown", "--no-graceful")["done"] == 1
    assert gateway.broker.process.wait(SECONDS_MAX) == -signal.SIGKILL
    kept = rumqd("log", "read", "--json", "--data", str(gateway.broker.data))
    assert json.loads(kept.out)["payload"] == "21.5"
    refused(gateway, over, "ping")


def test_the_commands_of_a_day_are_a_script(gateway: Gateway, over: str) -> None:
    """Publish, sessions, topics, one session, status, replay, drain: each by one command, with JSON where it prints."""
    port = str(gateway.broker.address.port)
    for n in range(3):
        assert rumqd("pub", "-p", port, "plant/7", "-m", str(n), "-q", "1").status == 0
    replay = rumqd("sub", "-p", port, "plant/#", "--from", "earliest", "-C", "3", "--json", "-i", "desk")
    assert [json.loads(line)["payload"] for line in replay.out.splitlines()] == ["0", "1", "2"]
    for words in (("clients",), ("topics",), ("status",)):
        assert ask(gateway, over, *words)
    assert "there is no client 'desk'" in refused(gateway, over, "client", "--client", "desk").err, "it has ended"
    assert ask(gateway, over, "drain")["done"] == 0, "nobody is here"
    late = rumqd("pub", "-p", port, "plant/7", "-m", "3", "-q", "1")
    assert late.status == 1 and all(row["draining"] for row in ask(gateway, over, "shards")["shards"])
    ask(gateway, over, "undrain")
    assert rumqd("pub", "-p", port, "plant/7", "-m", "3", "-q", "1").status == 0


def test_on_a_terminal_what_destroys_something_is_asked_for_first(gateway: Gateway, over: str) -> None:
    port = str(gateway.broker.address.port)
    words = ("sub", "-p", port, "plant/#", "-q", "1", "-i", "pump-7", "--session-expiry", "3600", "-W", "1")
    assert rumqd(*words).status == 0
    for typed, status in (("no", 1), ("", 1), ("yes", 0)):
        shown = Terminal("ask", "drop", "--client", "pump-7", *where(gateway, over), width=200)
        try:
            shown.expect(r"drop client pump-7 of .*: its subscriptions and what it has not .*\. Type yes to go on: ")
            shown.key(typed + "\n")
            shown.expect(r"dropped +1" if typed == "yes" else "nothing was done")
            assert shown.end() == status
        finally:
            shown.close()
        left = 0 if typed == "yes" else 1
        assert len(ask(gateway, over, "clients")["clients"]) == left
    assert "there is no client 'pump-7'" in refused(gateway, over, "drop", "--client", "pump-7", "--yes").err
