"""The attack: few things, each as large as the standard allows. Topics, filters and client ids of 60 KB, a thousand of
them, took half a gigabyte of memory and of disk in seconds. Limits count bytes as well as things."""

import random
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.flow_control.limits import Limits
from rumq.session.state.subscribed_filters import SubscribedFilters
from tests.conformance import wire
from tests.conformance.wire import Kind, Prop
from tests.faults.shard import Client
from tests.isolation.turns import Connection, Turned

QUOTA_EXCEEDED = 0x97
MIB = 1 << 20


@pytest.fixture
def shard() -> Iterator[Turned]:
    made = Turned(SimulatedFiles(), topics_bytes_max=10_000)
    yield made
    made.end()


def codes(client: Client) -> list[int]:
    return [code for packet in client.take() for code in (packet.codes or [packet.code])]


def names(shard: Turned) -> int:
    return sum(len(name) for name in shard.store.partitions[1].topic_names)


def test_the_names_of_a_stream_s_topics_have_a_bound_in_bytes(shard: Turned) -> None:
    client = Connection(shard, "p")
    said = []
    for number in range(20):
        client.say(wire.publish(f"{number}/".ljust(1000, "x"), b"", 1, 1 + number))
        said += codes(client)
    assert said == [0] * 10 + [QUOTA_EXCEEDED] * 10
    assert names(shard) == 10_000
    client.say(wire.publish("1/".ljust(1000, "x"), b"known", 1, 99))
    assert codes(client) == [0], "those for known ones go on"
    assert "10000 bytes" in shard.told("topic.refused")[0]["why"]


def test_the_bytes_of_names_are_counted_on_after_a_restart() -> None:
    files = SimulatedFiles()
    before = Turned(files, topics_bytes_max=10_000)
    client = Connection(before, "p")
    client.say(*[wire.publish(f"{number}/".ljust(1000, "x"), b"", 1, 1 + number) for number in range(9)])
    before.settle()
    before.end()
    before.store.close()
    after = Turned(files, topics_bytes_max=10_000)
    client = Connection(after, "p")
    client.say(wire.publish("new/".ljust(1001, "x"), b"", 1, 1), wire.publish("new", b"", 1, 2))
    assert codes(client) == [QUOTA_EXCEEDED, 0]
    after.end()


def test_by_default_a_topic_has_4_kib_and_a_client_id_1_kib(shard: Turned) -> None:
    client = Connection(shard, "c" * 1024)
    client.say(wire.publish("t".ljust(4096, "x"), b"", 1, 1), wire.subscribe(2, [("f".ljust(4096, "x"), 0)]))
    assert codes(client) == [0, 0]
    client.say(wire.publish("t".ljust(4097, "x"), b"", 1, 3))
    assert client.closed or codes(client) == [0x90]
    other = Connection(shard, "x")
    packet = wire.connect("c" * 1025)
    shard.parts.clients.broker.welcome(other).receive(packet, 0, len(packet))
    assert other.closed


@pytest.mark.parametrize(
    ("shape", "count"),
    [("{}", 8000), ("a/{}/+/b/#", 6000), ("/".join(["{}", *["a"] * 31]), 2000), ("{}/" + "x" * 4000, 1000)],
    ids=["short", "usual", "deep", "long"],
)
def test_the_filters_of_a_session_take_no_more_memory_than_they_may(shard: Turned, shape: str, count: int) -> None:
    """The estimate is the bound that is kept, so what is taken in truth must be no more."""
    limits = Limits(subscriptions_bytes_max=2 * MIB)
    shard.parts.clients.broker.limits = limits
    client = Connection(shard, "s")
    said: list[int] = []
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for first in range(0, count, 8):
            asked = [(shape.format(f"{number:05}"), 1) for number in range(first, first + 8)]
            client.say(wire.subscribe(1 + first, asked))
            said += codes(client)
            if QUOTA_EXCEEDED in said:
                break
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert QUOTA_EXCEEDED in said
    session = shard.parts.clients.broker.registry.sessions["s"]
    assert 0.9 * 2 * MIB < session.asked.bytes <= 2 * MIB
    assert taken < 2.2 * MIB, f"{taken} bytes for an estimate of {session.asked.bytes}"


def test_filters_that_are_given_back_are_free_again() -> None:
    limits = Limits(subscriptions_bytes_max=10_000, wildcard_levels_max=20)
    chance, filters, there = random.Random(7), SubscribedFilters(), set[str]()
    shapes = ["a", "a/b/c", "a/+/c", "+/b/#", "#", "$share/g/+/x", "$log/-1h/a/+"]
    for _ in range(5000):
        one = chance.choice(shapes) + f"/{chance.randrange(3)}" * chance.randrange(3)
        if chance.random() < 0.5 and not filters.refusal(one, limits):
            filters.add(one)
            there.add(one)
        else:
            filters.discard(one)
            there.discard(one)
        assert filters.bytes <= 10_000 and filters.wildcard_levels <= 20
    again = SubscribedFilters(there)
    assert (filters.bytes, filters.wildcard_levels) == (again.bytes, again.wildcard_levels)
    assert set(filters) == there


# Sessions


def lasting(shard: Turned, user: str, number: int, **more: Any) -> int:
    """The reason code of a CONNECT for a lasting session."""
    client = Taken(shard, f"{user}-{number}", username=user, **more)
    if not client.closed:
        client.say(wire.disconnect())
    return client.code


class Taken(Connection):
    """One that may be refused. code: of its CONNACK; connack: all of it"""

    def take(self) -> list[Any]:
        packets = super().take()
        if packets and packets[0].kind == Kind.CONNACK:
            self.connack, self.code = packets[0], packets[0].code
        return packets

    def __init__(self, shard: Turned, client_id: str, version: int = 5, **more: Any) -> None:
        kept = {"properties": [(Prop.SESSION_EXPIRY, 0xFFFFFFFF)]} if version == 5 else {}
        super().__init__(shard, client_id, version, **({"clean": False} | kept | more))


def test_one_user_has_half_of_the_lasting_sessions_and_there_is_room_for_others(shard: Turned) -> None:
    shard.parts.clients.broker.limits = Limits(sessions_max=12)
    assert [lasting(shard, "eve", n) for n in range(9)] == [0] * 6 + [QUOTA_EXCEEDED] * 3
    assert [lasting(shard, "mallory", n) for n in range(4)] == [0] * 3 + [QUOTA_EXCEEDED]
    assert lasting(shard, "anna", 1) == 0
    assert lasting(shard, "eve", 3) == 0, "who has a session comes back to it"
    assert lasting(shard, "eve", 9, properties=[]) == 0, "one that ends with its connection is no lasting one"
    assert len(shard.parts.clients.broker.registry.sessions) == 10
    # What ends is free again.
    for number in (2, 3):
        assert lasting(shard, "eve", number, clean=True, properties=[]) == 0
    assert lasting(shard, "mallory", 9) == 0


def test_sessions_are_counted_on_after_a_restart() -> None:
    files = SimulatedFiles()
    before = Turned(files)
    assert [lasting(before, "eve", n) for n in range(6)] == [0] * 6
    before.settle()
    before.end()
    before.store.close()
    after = Turned(files)
    after.parts.clients.broker.limits = Limits(sessions_max=6)
    assert lasting(after, "anna", 1) == QUOTA_EXCEEDED
    assert lasting(after, "eve", 1) == 0
    after.end()


@pytest.mark.parametrize("version", [4, 5])
def test_a_session_that_asks_for_ever_ends_after_a_fortnight_by_default(shard: Turned, version: int) -> None:
    client = Taken(shard, "eternal", version)
    fortnight = 14 * 86_400
    if version == 5:
        assert client.connack.get(Prop.SESSION_EXPIRY) == fortnight, "MQTT 5.0, 3.2.2.3.2"
    client.link.lost("gone")
    shard.after(fortnight - 1)
    assert "eternal" in shard.parts.clients.broker.registry.sessions
    shard.after(2)
    assert "eternal" not in shard.parts.clients.broker.registry.sessions


def test_a_session_of_an_earlier_run_that_was_to_stay_for_ever_has_the_same_end() -> None:
    files = SimulatedFiles()
    before = Turned(files)
    before.parts.clients.broker.limits = Limits(session_expiry_seconds_max=0xFFFFFFFF)
    Taken(before, "eternal").link.lost("gone")
    before.settle()
    before.end()
    before.store.close()
    after = Turned(files, now_us=before.now_us + 86_400_000_000)
    assert "eternal" in after.parts.clients.broker.registry.sessions
    after.after(13 * 86_400 + 1)
    assert "eternal" not in after.parts.clients.broker.registry.sessions
    after.end()
