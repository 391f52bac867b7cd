"""The tally of a shard: what its connections counted, added up some sessions a turn."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.bus import messages as m
from rumq.shards.bus.shard_tally import PartitionTally
from rumq.shards.stats.counters import SESSIONS_A_TURN, CountedShard, Counters
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Client, Shard
from tests.shards.bus.world import Hand

LASTING = [(Prop.SESSION_EXPIRY, 1_000_000)]
INCARNATION = 77
REFUSED = 3


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


class Count:
    """The counters of a shard, turned by hand. tallies: in the order in which they came"""

    def __init__(self, shard: Shard) -> None:
        parts = shard.parts
        broker = parts.clients.broker
        counted = CountedShard(
            0, INCARNATION, shard.store, parts.router, broker.registry, broker.shard_totals,
            parts.delivery.drop_counters,
        )  # fmt: skip
        self.hand = Hand()
        self.sockets: Any = SimpleNamespace(bytes_in=1000, bytes_out=2000)
        self.counters = Counters(counted, self.hand, lambda: self.sockets, lambda: REFUSED)
        self.tallies: list[m.Tally] = []
        self.turns = 0

    def now(self) -> m.Tally:
        self.counters.count(self.tallies.append)
        self.turns = 0
        while self.hand.waiting:
            self.hand.waiting.pop()[1]()
            self.turns += 1
        return self.tallies[-1]


def test_what_clients_sent_and_got_is_counted_once(shard: Shard) -> None:
    publisher, reader = Client(shard, "p", 5), Client(shard, "r", 5)
    reader.say(wire.subscribe(1, [("t/#", 0), ("u", 0)]))
    publisher.say(*[wire.publish("t/1", b"12345", retain=True) for _ in range(4)], wire.PINGREQ)
    count = Count(shard)
    bytes_in = publisher.bytes_in + reader.bytes_in
    bytes_out = publisher.bytes_out + reader.bytes_out
    tally = count.now()
    assert (tally.shard, tally.incarnation) == (0, INCARNATION)
    counts = tally.counts
    assert (counts.published, counts.delivered, counts.connections, counts.sockets) == (4, 4, 2, 2)
    assert (counts.packets_in, counts.packets_out) == (4 + 1 + 1 + 2, 4 + 1 + 1 + 2)
    assert (counts.bytes_in, counts.bytes_out) == (1000 + bytes_in, 2000 + bytes_out)
    assert counts.refused == REFUSED
    assert count.now().counts == counts, "no connection is counted twice"


def test_what_stands_at_the_moment(shard: Shard) -> None:
    lasting = Client(shard, "lasting", 5, properties=LASTING)
    lasting.say(wire.subscribe(1, [("a", 1), ("b", 1), ("$share/g/c", 1)]), wire.disconnect())
    publisher = Client(shard, "p", 5)
    publisher.say(wire.publish("t/1", b"x", retain=True), wire.publish("t/2", b"x", 1, 1))
    standing = Count(shard).now().standing
    assert (standing.connected, standing.sessions, standing.subscriptions) == (1, 2, 3)
    assert (standing.shared, standing.retained, standing.topics) == (1, 1, 2)
    assert standing.log_bytes == sum(p.segments.bytes for p in shard.store.own) > 0
    assert standing.partitions == [
        PartitionTally("other", 0, 0, 0, 0),
        PartitionTally("main", 0, 0, 2, 2),
    ]


def test_what_was_not_delivered_counts_as_dropped(shard: Shard) -> None:
    shard.parts.delivery.drop_counters.count("expired", "c", "t", 5)
    assert Count(shard).now().counts.dropped == 5


def test_a_count_that_is_under_way_is_not_begun_again(shard: Shard) -> None:
    count = Count(shard)
    count.counters.count(count.tallies.append)
    count.now()
    assert len(count.tallies) == 1
    count.now()
    assert len(count.tallies) == 2


def test_a_turn_goes_through_so_many_sessions_and_no_more(shard: Shard) -> None:
    registry = shard.parts.clients.broker.registry
    for number in range(2 * SESSIONS_A_TURN + 1):
        registry.open(f"c{number}", None, personal=False, clean_start=True)
    count = Count(shard)
    assert count.now().standing.sessions == 2 * SESSIONS_A_TURN + 1
    assert count.turns == 3
