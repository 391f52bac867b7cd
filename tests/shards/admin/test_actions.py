"""What the operator has a shard do: bans, draining, places, segments."""

import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.admin import requests as q
from rumq.admin.operations import NotFound
from rumq.mqtt.reasons import Reason
from rumq.shards.admin.actions import is_named
from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.faults.shard import Client, Shard
from tests.shards.admin.world import LASTING, ask, login, publish


@pytest.mark.parametrize(("kind", "name"), [("client", "c"), ("address", "test")])
def test_a_ban_ends_the_connection_and_refuses_the_next_one_until_it_is_over(
    shard: Shard, kind: str, name: str
) -> None:
    client = Client(shard, "c", 5)
    assert ask(shard, "ban", kind=kind, name=name, seconds=60).done == 2  # the ban, and a connection
    (packet,) = client.take()
    assert (packet.kind, packet.code) == (Kind.DISCONNECT, Reason.ADMINISTRATIVE_ACTION) and client.closed
    assert login(shard, "c") == Reason.BANNED
    (row,) = ask(shard, "bans").bans
    assert (row.kind, row.name, row.seconds, row.refused) == (kind, name, 60.0, 1)
    shard.after(61.0)
    assert login(shard, "c") == Reason.SUCCESS and ask(shard, "bans").bans == []


def test_a_ban_of_another_client_is_no_matter_to_this_one_and_can_be_lifted(shard: Shard) -> None:
    ask(shard, "ban", kind="client", name="d")
    assert login(shard, "c") == Reason.SUCCESS and login(shard, "d") == Reason.BANNED
    assert ask(shard, "unban", kind="client", name="d").done == 1
    assert login(shard, "d") == Reason.SUCCESS and ask(shard, "unban", kind="client", name="d").done == 0


def test_a_broker_that_drains_lets_nobody_in_until_it_no_longer_does(shard: Shard) -> None:
    client = Client(shard, "c", 5)
    assert ask(shard, "drain").done == 1 and client.closed
    assert login(shard, "c") == Reason.SERVER_UNAVAILABLE
    assert ask(shard, "shards").shards[0].draining
    assert ask(shard, "undrain").done == 1 and login(shard, "c") == Reason.SUCCESS


@pytest.mark.parametrize("is_here", [True, False])
def test_a_session_starts_again_at_another_place(shard: Shard, is_here: bool) -> None:
    publish(shard, Client(shard, "p", 5), "t", "t", "u")
    client = Client(shard, "c", 5, properties=LASTING)
    client.say(wire.subscribe(1, [("t", 1)]))
    client.take()
    if not is_here:
        client.say(wire.disconnect())
    assert ask(shard, "reset", client="c", start="earliest").done == 1
    shard.settle()
    if not is_here:
        client = Client(shard, "c", 5, properties=LASTING, clean=False)
    got = [packet for packet in client.take() if packet.kind == Kind.PUBLISH]
    assert len(got) == 2, "both messages from before it subscribed"
    publish(shard, Client(shard, "q", 5), "t")
    assert len(client.take()) == 1, "and what comes live"


def test_a_place_that_there_is_not_is_refused_and_nobody_is_reset(shard: Shard) -> None:
    client = Client(shard, "c", 5, properties=LASTING)
    client.say(wire.subscribe(1, [("t/#", 1)]))
    with pytest.raises(ValueError, match="an offset counts the messages of one topic"):
        ask(shard, "reset", client="c", start="7")
    with pytest.raises(NotFound, match="no client 'nobody'"):
        ask(shard, "reset", client="nobody", start="earliest")
    assert ask(shard, "client", client="c").subscriptions[0].kind == "live"


def test_a_partition_is_sealed_and_trimmed(shard: Shard) -> None:
    publisher = Client(shard, "p", 5)
    publish(shard, publisher, "t", "t")
    assert ask(shard, "seal", stream="main").done == 1
    shard.settle()
    publish(shard, publisher, "t")
    shard.settle()
    assert [row.base_lsn for row in ask(shard, "segments", stream="main").segments] == [2, 0]
    assert ask(shard, "trim", stream="main", below_lsn=1).done == 0, "a record of the segment is to stay"
    assert ask(shard, "trim", stream="main", below_lsn=2).done == 1
    shard.settle()
    assert [row.base_lsn for row in ask(shard, "segments", stream="main").segments] == [2]
    assert shard.told("log.trimmed")[0]["why"] == "operator"
    with pytest.raises(NotFound, match="stream 'nothing'"):
        ask(shard, "seal", stream="nothing")


@pytest.mark.parametrize("peer", ["a:1883", "a"])
def test_a_ban_names_clients_by_client_id_user_or_address(peer: str) -> None:
    link = SimpleNamespace(transport=SimpleNamespace(peer=peer))
    session: Any = SimpleNamespace(client_id="c", owner=SimpleNamespace(user="u"), link=link)
    anonymous: Any = SimpleNamespace(client_id="u", owner=None, link=link)
    for kind, name in (("client", "c"), ("user", "u"), ("address", "a")):
        assert [is_named(session, q.Ban(kind=kind, name=each)) for each in "cua"] == [  # type: ignore[arg-type]
            each == name for each in "cua"
        ]
    assert not is_named(anonymous, q.Ban(kind="user", name="u"))


@pytest.fixture
def sent(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Signals that were sent: (process, number)."""
    found: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: found.append((pid, number)))
    return found


@pytest.mark.parametrize(("graceful", "number"), [(True, signal.SIGTERM), (False, signal.SIGKILL)])
def test_a_shutdown_is_sigterm_or_a_kill(
    shard: Shard, sent: list[tuple[int, int]], graceful: bool, number: int
) -> None:
    assert ask(shard, "shutdown", graceful=graceful).done == 1
    assert sent == [], "the answer goes first"
    shard.after(0.1)
    assert sent == [(os.getpid(), number)]


def test_a_prepared_shutdown_says_what_it_ends_and_its_token_is_good_once(
    shard: Shard, sent: list[tuple[int, int]]
) -> None:
    Client(shard, "c", 5)
    prepared = ask(shard, "prepare", seconds=30)
    assert (prepared.connected, prepared.seconds) == (1, 30.0) and len(prepared.token) == 16
    assert ask(shard, "shutdown", token=prepared.token).done == 1
    with pytest.raises(ValueError, match="not that of the last `prepare`"):
        ask(shard, "shutdown", token=prepared.token)
    shard.after(0.1)
    assert len(sent) == 1


def test_a_shutdown_with_a_wrong_or_old_token_stops_nothing(shard: Shard, sent: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="not that of the last `prepare`"):
        ask(shard, "shutdown", token="")
    old = ask(shard, "prepare").token
    newer = ask(shard, "prepare", seconds=5).token
    with pytest.raises(ValueError, match="not that of the last `prepare`"):
        ask(shard, "shutdown", token=old)
    newer = ask(shard, "prepare", seconds=5).token
    shard.after(5.1)
    with pytest.raises(ValueError, match="too old"):
        ask(shard, "shutdown", token=newer)
    shard.after(0.1)
    assert sent == []
