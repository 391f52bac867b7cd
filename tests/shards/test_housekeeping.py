"""What a turn does by the clock: silent clients, expired sessions, removal of segments, timers; each when it is due."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.state.keep_alive import CHECK_SECONDS
from rumq.shards.housekeeping import CONNECTIONS_A_COLLECTION, TIDY_SECONDS, Housekeeping
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop, Will
from tests.faults.shard import Client, Shard


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


class Parts:
    """Removal of segments, as housekeeping knows it. looks: in order"""

    def __init__(self) -> None:
        self.looks: list[str] = []
        self.removal: Any = self.part("removal")

    def part(self, name: str) -> Any:
        class Part:
            def look(_) -> None:
                self.looks.append(name)

        return Part()


def stage(shard: Shard, parts: Parts) -> Housekeeping:
    """Another one over the shard's parts."""
    inner = shard.parts
    return Housekeeping(
        inner.clock, inner.timers, inner.events, inner.clients.broker, inner.clients.registry,
        parts.removal, inner.turn.steps.step,
    )  # fmt: skip


def test_a_client_that_is_silent_for_one_and_a_half_keep_alives_is_closed(shard: Shard) -> None:
    """MQTT-3.1.2-22"""
    client = Client(shard, "c", 5, keep_alive=10)
    shard.after(14.9)
    assert not client.closed
    shard.after(CHECK_SECONDS)
    assert client.closed and client.take()[-1].code == 0x8D
    assert [event["client_id"] for event in shard.told("client.lost")] == ["c"]


def test_a_session_ends_when_its_expiry_is_over_and_its_will_is_published(shard: Shard) -> None:
    reader = Client(shard, "r", 5)
    reader.say(wire.subscribe(1, [("gone", 0)]))
    will = Will("gone", b"will", properties=[(Prop.WILL_DELAY, 1000)])
    client = Client(shard, "c", 5, properties=[(Prop.SESSION_EXPIRY, 60)], will=will)
    client.link.lost("the network")
    shard.after(59.0)
    assert shard.told("session.expired") == [] and len(shard.parts.clients.broker.registry.sessions) == 2
    shard.after(1.0)
    assert shard.told("session.expired") == [{"client_id": "c"}]
    assert [each.client_id for each in shard.parts.clients.broker.registry.sessions.values()] == ["r"]
    assert [each.payload for each in reader.take() if each.kind is Kind.PUBLISH] == [b"will"]


def test_segments_are_looked_at_once_a_second(shard: Shard) -> None:
    parts = Parts()
    housekeeping = stage(shard, parts)
    for seconds in (0.0, 0.0, TIDY_SECONDS / 2, TIDY_SECONDS / 2, 0.1):
        shard.monotonic += seconds
        shard.parts.clock.tick()
        housekeeping.end_turn()
    assert parts.looks == ["removal"] * 2


def test_a_timer_that_raises_is_reported_and_the_next_one_is_called(shard: Shard) -> None:
    called: list[str] = []

    def fails() -> None:
        raise ZeroDivisionError

    shard.parts.timers.later(1.0, fails)
    shard.parts.timers.later(1.5, lambda: called.append("next"))
    shard.after(2.0)
    assert called == ["next"]
    assert [event["task"] for event in shard.told("task.failed")] == ["timer"]


def test_it_wants_a_turn_for_the_next_check_of_silent_clients_or_the_next_session_that_expires(
    shard: Shard,
) -> None:
    housekeeping = stage(shard, Parts())
    housekeeping.end_turn()
    check = shard.parts.clients.broker.keep_alive_monitor.next_check
    assert housekeeping.next_deadline() == check == pytest.approx(shard.monotonic, abs=CHECK_SECONDS)
    client = Client(shard, "c", 5, properties=[(Prop.SESSION_EXPIRY, 1)])
    client.say(wire.disconnect())
    expiry = shard.parts.clients.broker.registry.deadlines.earliest()
    assert expiry == shard.monotonic + 1.0
    shard.parts.clients.broker.keep_alive_monitor.next_check = expiry + 5.0
    assert housekeeping.next_deadline() == expiry
    shard.parts.clients.broker.keep_alive_monitor.next_check = expiry - 0.1
    assert housekeeping.next_deadline() == expiry - 0.1


def test_what_is_left_of_many_connections_is_collected_once(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1))
    shard.parts.clients.broker.welcomed += CONNECTIONS_A_COLLECTION
    shard.after(TIDY_SECONDS)
    assert collected == []
    shard.parts.clients.broker.welcomed += 1
    shard.after(TIDY_SECONDS)
    shard.after(TIDY_SECONDS)
    assert collected == [1]
