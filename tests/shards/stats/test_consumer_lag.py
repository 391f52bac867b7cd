"""Consumer lag: how far sessions are behind and how fast they go, told when it is too far and when it is over."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.state.session import Session
from rumq.shards.stats.consumer_lag import INTERVAL_SECONDS, SESSIONS_A_TURN, ConsumerLag
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Client, Shard
from tests.shards.bus.world import Hand

LASTING = [(Prop.SESSION_EXPIRY, 1_000_000)]


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


def away(shard: Shard, client_id: str = "away") -> Session:
    """A session that reads t, whose client has gone."""
    client = Client(shard, client_id, 5, properties=LASTING)
    client.say(wire.subscribe(1, [("t", 1)]), wire.disconnect())
    return session_of(shard, client_id)


def session_of(shard: Shard, client_id: str) -> Session:
    return next(s for s in shard.parts.clients.broker.registry.sessions.values() if s.client_id == client_id)


def publish(shard: Shard, client: Client, count: int, seconds: float = 0.0) -> None:
    for number in range(count):
        client.say(wire.publish("t", b"x", 1, 1 + number))
        shard.after(seconds)


def test_the_lag_is_the_records_that_are_not_read_yet_and_the_age_of_the_oldest(shard: Shard) -> None:
    session, publisher = away(shard), Client(shard, "p", 5)
    assert shard.parts.operation.consumers.lag(session) == (0, 0.0)
    publish(shard, publisher, 5, seconds=1.0)
    assert shard.parts.operation.consumers.lag(session) == (5, pytest.approx(5.0, abs=1.0))


def test_a_client_that_reads_everything_at_once_has_no_lag(shard: Shard) -> None:
    client, publisher = Client(shard, "c", 5), Client(shard, "p", 5)
    client.say(wire.subscribe(1, [("t", 0)]))
    publish(shard, publisher, 5, seconds=1.0)
    assert shard.parts.operation.consumers.lag(session_of(shard, "c")) == (0, 0.0)


def test_of_records_in_another_shard_the_number_is_known_and_their_age_is_not() -> None:
    hand = Hand()
    elsewhere = SimpleNamespace(is_volatile=False)
    feed: Any = SimpleNamespace(index=0, partition=elsewhere, mark=lambda committed_only: 12)
    reader = SimpleNamespace(
        cursors=[5], is_live=lambda index: False, group=SimpleNamespace(wants=SimpleNamespace(committed_only=True))
    )
    session: Any = SimpleNamespace(subscriber=SimpleNamespace(readers=lambda: [reader]))
    registry: Any = None
    assert ConsumerLag(registry, [feed], hand, hand, hand).lag(session) == (7, None)


def test_the_age_is_that_of_the_oldest_record_here_whatever_other_shards_have(shard: Shard) -> None:
    session, publisher = away(shard), Client(shard, "p", 5)
    publish(shard, publisher, 5, seconds=1.0)
    (real,) = [feed for feed in shard.parts.router.feeds if feed.partition.next_lsn == 5]
    elsewhere: Any = SimpleNamespace(
        index=real.index, partition=SimpleNamespace(is_volatile=False), mark=lambda committed_only: 12
    )
    for feeds in ([elsewhere, real], [real, elsewhere]):
        lag = ConsumerLag(shard.parts.clients.broker.registry, feeds, shard.parts.clock, Hand(), Hand())
        assert lag.lag(session) == (5 + 12, pytest.approx(5.0, abs=1.0))


@pytest.mark.parametrize(
    ("records_max", "seconds_max", "count", "is_told"),
    [(10, 0, 10, False), (10, 0, 11, True), (0, 30, 11, False), (0, 5, 11, True), (0, 0, 1000, False)],
)
def test_more_than_is_allowed_is_told(
    shard: Shard, records_max: int, seconds_max: int, count: int, is_told: bool
) -> None:
    consumers = shard.parts.operation.consumers
    consumers.lag_records_max, consumers.lag_seconds_max = records_max, seconds_max
    away(shard)
    publish(shard, Client(shard, "p", 5), count)
    shard.after(15.0)
    consumers.begin()
    shard.after(0.0)
    told = shard.told("consumer.lagging")
    assert bool(told) is is_told
    if is_told:
        assert told == [{"client_id": "away", "records": count, "seconds": 15.0, "connected": False}]


def test_it_is_told_once_and_that_it_is_over_below_half_of_what_was_too_much(shard: Shard) -> None:
    consumers, publisher = shard.parts.operation.consumers, Client(shard, "p", 5)
    consumers.lag_records_max = 10
    session = away(shard)
    consumers.begin()
    publish(shard, publisher, 12)
    for _ in range(3):
        shard.after(INTERVAL_SECONDS)
    assert len(shard.told("consumer.lagging")) == 1
    reader = session.subscriber.main
    assert reader is not None
    for at, told in ((6, 0), (7, 1)):
        reader.cursors[1] = at  # of stream main
        shard.after(INTERVAL_SECONDS)
        assert len(shard.told("consumer.caught_up")) == told, at
    publish(shard, publisher, 8)
    shard.after(INTERVAL_SECONDS)
    assert len(shard.told("consumer.lagging")) == 2, "and again"


def test_rates_are_those_between_two_checks(shard: Shard) -> None:
    publisher = Client(shard, "p", 5)
    session = session_of(shard, "p")
    assert shard.parts.operation.consumers.rates(session) is None
    shard.parts.operation.consumers.begin()
    shard.after(0.0)
    first = shard.parts.operation.consumers.rates(session)
    assert first is not None and first[:5] == (shard.monotonic, 0, 0, 0.0, 0.0) and first.bytes_in > 0
    publish(shard, publisher, 20)
    shard.after(INTERVAL_SECONDS)
    shard.after(0.0)
    rates = shard.parts.operation.consumers.rates(session)
    assert rates is not None and (rates.published, rates.published_rate) == (20, 20 / INTERVAL_SECONDS)
    assert rates.bytes_in_rate > rates.bytes_out_rate > 0.0, "bytes are counted as well as messages"
    shard.after(INTERVAL_SECONDS)
    shard.after(0.0)
    rates = shard.parts.operation.consumers.rates(session)
    assert rates is not None and (rates.published, rates.published_rate) == (20, 0.0)


def test_what_is_known_of_a_session_goes_with_it(shard: Shard) -> None:
    consumers = shard.parts.operation.consumers
    consumers.lag_records_max = 1
    session = away(shard)
    publish(shard, Client(shard, "p", 5), 3)
    consumers.begin()
    shard.after(0.0)
    assert consumers.rates(session) is not None and len(shard.told("consumer.lagging")) == 1
    shard.parts.clients.broker.registry.end(session)
    shard.after(INTERVAL_SECONDS)
    assert consumers.rates(session) is None
    away(shard)
    publish(shard, Client(shard, "q", 5), 3)
    shard.after(INTERVAL_SECONDS)
    shard.after(0.0)
    assert len(shard.told("consumer.lagging")) == 2, "a session of the same name is another one"


def test_a_turn_checks_so_many_sessions_and_no_more() -> None:
    hand = Hand()
    checked: list[int] = []

    class Subscriber:
        def __init__(self, number: int) -> None:
            self.number = number

        def readers(self) -> list[Any]:
            checked.append(self.number)
            return []

    sessions: dict[str, Any] = {
        str(number): SimpleNamespace(
            key=str(number), ended=number == 7, link=None, subscriber=Subscriber(number),
            published=0, delivered=0,
        )
        for number in range(2 * SESSIONS_A_TURN + 1)
    }  # fmt: skip
    registry: Any = SimpleNamespace(sessions=sessions)
    consumers = ConsumerLag(registry, [], hand, hand, hand)
    consumers.lag_records_max = 1
    consumers.begin()
    a_turn = []
    while any(seconds == 0.0 for seconds, _ in hand.waiting):
        before = len(checked)
        (at,) = [at for at, (seconds, _) in enumerate(hand.waiting) if seconds == 0.0]
        hand.waiting.pop(at)[1]()
        a_turn.append(len(checked) - before)
    assert sorted(a_turn) == [1, SESSIONS_A_TURN - 1, SESSIONS_A_TURN], "one of them has ended"
    assert sorted(checked) == [number for number in range(2 * SESSIONS_A_TURN + 1) if number != 7]
    ((seconds, _),) = hand.waiting
    assert seconds == INTERVAL_SECONDS
