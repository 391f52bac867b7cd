"""A leader answers questions that operators ask at other nodes, as it answers those of its own socket."""

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from rumq.admin.socket.admin_socket import SECONDS_MAX
from rumq.cluster.links.greeting import Greeting, GreetingRefused, Taken
from rumq.net.frames import encoded, maybe_first
from rumq.shards.links import admin_callers
from tests.cluster.admin.world import ANSWERS
from tests.shards.links.world import CLUSTER, Leader, World


def asked(world: World, leader: Leader, question: bytes) -> socket.socket:
    sock = world.client(leader)
    sock.send(encoded(Greeting("admin", CLUSTER, "n9#99999999", leader.index, 1), [question]))
    return sock


def heard(world: World, sock: socket.socket) -> tuple[Any, bytes]:
    """The frame, and the line behind it; what was sent before the connection was closed."""
    got = bytearray()

    def is_whole() -> bool:
        try:
            data = sock.recv(1 << 16)
        except BlockingIOError:
            return False
        got.extend(data)
        return not data or got.endswith(b"\n")

    world.until(is_whole)
    first = maybe_first(ANSWERS, bytes(got), 1 << 16)
    assert first is not None
    return first[0], bytes(got[first[2] :])


def test_a_question_is_answered_with_a_line_and_the_asker_closes(world: World) -> None:
    leader = world.leader(1, 7)
    sock = asked(world, leader, b'{"ask":"status"}')
    answer, line = heard(world, sock)
    assert answer == Taken(7) and json.loads(line) == {"shard": 1, "ask": "status"}
    assert len(leader.admin) == 1
    sock.close()
    world.until(lambda: not len(leader.admin))
    assert not leader.site.pump.connections


def test_an_answer_that_takes_turns_comes_when_it_is_there(world: World) -> None:
    leader = world.leader(0)
    waiting: list[Callable[[dict[str, Any]], None]] = []
    leader.answer = lambda question: waiting.append
    sock = asked(world, leader, b"{}")
    world.until(lambda: waiting)
    waiting[0]({"rows": list(range(200_000))})  # more than a socket holds
    assert len(json.loads(heard(world, sock)[1])["rows"]) == 200_000


def test_a_wrong_question_and_a_bug_are_answers(world: World) -> None:
    leader = world.leader(0)

    def answer(question: dict[str, Any]) -> Any:
        raise (KeyError if question["ask"] == "bug" else ValueError)("no such thing")

    leader.answer = answer
    assert json.loads(heard(world, asked(world, leader, b'{"ask":"x"}'))[1]) == {"error": "no such thing"}
    assert "KeyError" in json.loads(heard(world, asked(world, leader, b'{"ask":"bug"}'))[1])["error"]
    assert "truncated" in json.loads(heard(world, asked(world, leader, b"{"))[1])["error"]

    def late(done: object) -> None:
        raise AttributeError("behind the question")

    leader.answer = lambda question: late
    assert "AttributeError" in json.loads(heard(world, asked(world, leader, b"{}"))[1])["error"]
    assert leader.failures == ["answer", "answer"]


def test_who_never_reads_the_answer_is_closed(world: World) -> None:
    leader = world.leader(0)
    leader.answer = lambda question: {"text": "x" * (16 << 20)}
    asked(world, leader, b"{}")
    world.until(lambda: len(leader.admin))
    world.wait(SECONDS_MAX - 1)
    assert len(leader.admin) == 1
    world.wait(2)
    assert len(leader.admin) == 0 and not leader.site.pump.connections


def test_too_many_at_once_are_told_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_callers, "CALLERS_MAX", 1)
    leader = world.leader(0)
    leader.answer = lambda question: lambda done: None
    asked(world, leader, b"{}")
    world.until(lambda: len(leader.admin))
    answer, _ = heard(world, asked(world, leader, b"{}"))
    assert answer == GreetingRefused("1 questions of other nodes are under way: ask again")
