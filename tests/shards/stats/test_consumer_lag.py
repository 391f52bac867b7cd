"""Consumer lag: how far sessions are behind and how fast they go, told when it is too far and when it is over."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.stats.consumer_lag import INTERVAL_SECONDS, SESSIONS_A_TURN, ConsumerLag, LagAlarm
from rumq.shards.stats.session_lag import SessionLag
from tests.faults.shard import Client, Shard
from tests.shards.bus.world import Hand
from tests.shards.stats.world import away, publish, session_of


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard(SimulatedFiles())
    yield made
    made.end()


@pytest.mark.parametrize(
    ("records_max", "seconds_max", "count", "is_told"),
    [(10, 0, 10, False), (10, 0, 11, True), (0, 30, 11, False), (0, 5, 11, True), (0, 0, 1000, False)],
)
def test_more_than_is_allowed_is_told(
    shard: Shard, records_max: int, seconds_max: int, count: int, is_told: bool
) -> None:
    consumers = shard.parts.operation.consumers
    consumers.alarm.records_max, consumers.alarm.seconds_max = records_max, seconds_max
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
    consumers.alarm.records_max = 10
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
    consumers.alarm.records_max = 1
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
    consumers = ConsumerLag(registry, SessionLag([], hand), hand, hand, LagAlarm(hand))
    consumers.alarm.records_max = 1
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
