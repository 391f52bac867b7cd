"""The attack: a client subscribes and unsubscribes in a loop. Every topic that is known is matched again with its next
message, and who publishes, and everybody behind it in the partition, waited for it.

Visits of the filter index are counted, not time."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.rate_limits import BURST_SECONDS
from tests.attacks.test_filters_that_blow_up import costly, new_topics, payloads, subscribed, visits
from tests.conformance import wire
from tests.conformance.wire import Kind, Will
from tests.isolation.turns import Connection, Turned

LEVELS, SESSIONS, RATE = 31, 3, 10_000
FILTERS = 100  # of a session: a topic costs 600 visits
TURN_SECONDS = 0.01


@pytest.fixture
def shard() -> Iterator[Turned]:
    made = Turned(SimulatedFiles(), limits=Limits(new_topic_visits_per_second_max=RATE))
    for number in range(SESSIONS):
        subscribed(made, f"g{number}", costly(number, FILTERS, LEVELS))
    yield made
    made.end()


def elsewhere(shard: Turned, client_id: str) -> Connection:
    """A client of another address than the others."""
    made = Connection(shard, client_id)
    made.peer = "198.51.100.7:1883"
    return made


def loop(shard: Turned, client: Connection, topic: str, filters: list[str], turns: int) -> tuple[int, int]:
    """So many turns in which a topic gets a message, and a client changes a filter if it is read.

    returns: visits, and in how many turns the client was not read"""
    publisher = elsewhere(shard, "publisher")
    publisher.say(wire.publish(topic, b"first"))
    before, changes, held = visits(shard), 0, 0
    for _ in range(turns):
        if client.is_held:
            held += 1
        else:
            asked = filters[changes // 2 % len(filters)]
            client.send(wire.unsubscribe(1, [asked]) if changes % 2 else wire.subscribe(1, [(asked, 0)]))
            changes += 1
        publisher.send(wire.publish(topic, b"x"))
        shard.turn()
        shard.monotonic += TURN_SECONDS
    assert not publisher.is_held, "who publishes to a topic that is known pays nothing"
    return visits(shard) - before, held


@pytest.mark.parametrize("filters", [["+/x"], ["#"], ["TOPIC"]], ids=["matches nothing", "matches all", "exact"])
def test_a_loop_of_subscriptions_makes_no_more_work_than_its_holder_has_paid_for(
    shard: Turned, filters: list[str]
) -> None:
    topic = new_topics(1, LEVELS)[0]
    greedy, turns = Connection(shard, "greedy"), 600
    spent, held = loop(shard, greedy, topic, [topic if f == "TOPIC" else f for f in filters], turns)
    seconds = turns * TURN_SECONDS + BURST_SECONDS
    assert held > turns // 3
    assert RATE * seconds / 3 < spent <= RATE * seconds + 4_000
    other = elsewhere(shard, "other")
    other.send(wire.subscribe(1, [("other/#", 0)]))
    shard.turn()
    assert [packet.kind for packet in other.take()] == [Kind.SUBACK], "others do not wait"


def test_who_waits_is_served_once_it_has_paid(shard: Turned) -> None:
    greedy = Connection(shard, "greedy")
    loop(shard, greedy, new_topics(1, LEVELS)[0], ["#"], 600)
    while not greedy.is_held:
        loop(shard, greedy, new_topics(1, LEVELS)[0], ["#"], 1)
    greedy.take()
    greedy.send(wire.publish("behind/it", b"x"))
    for _ in range(20):
        shard.monotonic += 0.5
        shard.turn()
    assert not greedy.is_held and not greedy.closed
    kinds = {packet.kind for packet in greedy.take()}
    assert kinds & {Kind.SUBACK, Kind.UNSUBACK}


def test_one_subscription_keeps_nobody_waiting_however_many_topics_there_are(shard: Turned) -> None:
    publisher, dashboard = elsewhere(shard, "publisher"), Connection(shard, "dashboard")
    topics = new_topics(200, LEVELS)
    for topic in topics:
        publisher.send(wire.publish(topic, b"x"))
        while publisher.is_held or publisher.has_unread:
            shard.turn()
            shard.monotonic += 0.1
    dashboard.say(wire.subscribe(1, [("+/y", 0)]))
    before = visits(shard)
    for topic in topics:
        publisher.send(wire.publish(topic, b"x"))
        shard.turn()
    assert visits(shard) - before > 2 * RATE * BURST_SECONDS, "more than is in the bucket"
    dashboard.take()
    dashboard.send(wire.subscribe(2, [("+/z", 0)]))
    shard.turn()
    assert [packet.kind for packet in dashboard.take()] == [Kind.SUBACK]


def test_a_will_s_new_topic_is_charged_to_its_owner(shard: Turned) -> None:
    """It is published, but new topics of the same user or address wait after enough of them."""
    heard = subscribed(shard, "heard", ["#"])
    topics = new_topics(60, LEVELS)
    for number, topic in enumerate(topics):
        Connection(shard, f"w{number}", will=Will(topic, b"gone")).link.lost("the network")
        shard.turn()
    shard.settle()
    assert payloads(heard.take()) == [b"gone"] * len(topics)
    same, other = Connection(shard, "same"), elsewhere(shard, "other")
    same.send(wire.publish("cheap/1", b"x"))
    other.send(wire.publish("cheap/2", b"x"))
    shard.turn()
    assert same.is_held and not other.is_held
