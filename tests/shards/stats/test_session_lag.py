"""Session lag: how many records are not read yet, and how old the oldest of them is, where that is known."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.stats.session_lag import SessionLag
from tests.conformance import wire
from tests.faults.shard import Client, Shard
from tests.shards.bus.world import Hand
from tests.shards.stats.world import away, publish, session_of


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


def test_the_lag_is_the_records_that_are_not_read_yet_and_the_age_of_the_oldest(shard: Shard) -> None:
    session, publisher = away(shard), Client(shard, "p", 5)
    assert shard.parts.operation.consumers.lag.session_lag(session) == (0, 0.0)
    publish(shard, publisher, 5, seconds=1.0)
    assert shard.parts.operation.consumers.lag.session_lag(session) == (5, pytest.approx(5.0, abs=1.0))


def test_a_client_that_reads_everything_at_once_has_no_lag(shard: Shard) -> None:
    client, publisher = Client(shard, "c", 5), Client(shard, "p", 5)
    client.say(wire.subscribe(1, [("t", 0)]))
    publish(shard, publisher, 5, seconds=1.0)
    assert shard.parts.operation.consumers.lag.session_lag(session_of(shard, "c")) == (0, 0.0)


def test_of_records_in_another_shard_the_number_is_known_and_their_age_is_not() -> None:
    hand = Hand()
    elsewhere = SimpleNamespace(is_volatile=False)
    feed: Any = SimpleNamespace(index=0, partition=elsewhere, mark=lambda committed_only: 12)
    reader = SimpleNamespace(
        cursors=[5], is_live=lambda index: False, group=SimpleNamespace(wants=SimpleNamespace(committed_only=True))
    )
    session: Any = SimpleNamespace(subscriber=SimpleNamespace(readers=lambda: [reader]))
    assert SessionLag([feed], hand).session_lag(session) == (7, None)


def test_the_age_is_that_of_the_oldest_record_here_whatever_other_shards_have(shard: Shard) -> None:
    session, publisher = away(shard), Client(shard, "p", 5)
    publish(shard, publisher, 5, seconds=1.0)
    (real,) = [feed for feed in shard.parts.router.feeds if feed.partition.next_lsn == 5]
    elsewhere: Any = SimpleNamespace(
        index=real.index, partition=SimpleNamespace(is_volatile=False), mark=lambda committed_only: 12
    )
    for feeds in ([elsewhere, real], [real, elsewhere]):
        lag = SessionLag(feeds, shard.parts.clock)
        assert lag.session_lag(session) == (5 + 12, pytest.approx(5.0, abs=1.0))
