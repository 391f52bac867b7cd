"""The attack: hundreds of filters `$log/retained@T/...`, each a scan of the log. They kept the one reader thread busy
for minutes, also after the client had left. Scans are counted."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.isolation.turns import Connection, Turned, payloads

COUNT = 300


@pytest.fixture
def shard() -> Iterator[Turned]:
    made = Turned(SimulatedFiles())
    publisher = Connection(made, "p")
    publisher.say(*[wire.publish(f"r/{n}", b"%d" % n, retain=True) for n in range(4)])
    yield made
    made.end()


def finished(shard: Turned, client: Connection) -> None:
    for _ in range(4 * COUNT):
        shard.settle()
        finding = shard.parts.delivery.replay_start
        if not client.has_unread and not client.is_held and not finding._waiting and not finding._is_running:
            return


def distinct(number: int, start: str) -> str:
    return f"$log/retained@{start}/r/{number % 4}" if number < 4 else f"$log/retained@{start}/r/+/{number}/#"


def test_filters_with_the_same_start_are_one_scan(shard: Turned) -> None:
    client = Connection(shard, "greedy")
    asked = [(distinct(n, "2100-01-01T00:00:00Z"), 0) for n in range(COUNT)]
    client.send(*[wire.subscribe(1 + at, asked[at : at + 4]) for at in range(0, COUNT, 4)])
    while client.has_unread or client.is_held:
        shard.turn()  # and the scan of the first one takes so long
    finished(shard, client)
    assert shard.parts.delivery.replay_start.searches < COUNT / 30
    assert sorted(payloads(client.take())) == [b"0", b"1", b"2", b"3"]


def test_each_client_in_turn_has_one_search(shard: Turned) -> None:
    greedy, other = Connection(shard, "greedy"), Connection(shard, "other")
    asked = [(distinct(n, f"21{n % 100:02}-01-01T00:00:00Z"), 0) for n in range(40)]
    greedy.send(wire.subscribe(1, asked[:20]), wire.subscribe(2, asked[20:]))
    other.send(wire.subscribe(1, [("$log/retained@2100-01-01T00:00:00Z/r/#", 0)]))
    for _ in range(60):
        shard.turn()
        if payloads(other.take()):
            break
        if shard.parts.writing.workers.reader.pending:
            shard.wait()
    assert shard.parts.delivery.replay_start.searches <= 5, "it waited for one of the other's at most"


def test_what_a_client_that_has_gone_asked_for_is_not_looked_for(shard: Turned) -> None:
    client = Connection(shard, "greedy")
    asked = [(distinct(n, f"21{n % 100:02}-01-01T00:00:00Z"), 0) for n in range(60)]
    client.send(*[wire.subscribe(1 + at, asked[at : at + 10]) for at in range(0, 60, 10)])
    shard.turn()
    client.link.lost("gone")
    finished(shard, client)
    shard.settle()
    assert shard.parts.delivery.replay_start.searches <= 2
    assert not shard.parts.delivery.replay_start._waiting
