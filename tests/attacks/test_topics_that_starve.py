"""The attack: sessions full of filters that all match one kind of topic, and clients that publish to new ones of it.
Each is matched against all of the filters, and what others publish to the partition waited behind it for seconds.

Visits of the filter index are counted, not time; `python -m bench.new_topics` has the time."""

from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from router.matching.groups import AHEAD_VISITS
from rumq.session.flow_control.limits import Limits
from rumq.shards.write_path.new_topic_budget import FREE_VISITS
from tests.attacks.test_filters_that_blow_up import costly, new_topics, payloads, subscribed, visits
from tests.conformance import wire
from tests.isolation.turns import Connection, Turned

LEVELS = 31
SESSIONS = 3
FILTERS = Limits().wildcard_levels_max // LEVELS  # of a session


@pytest.fixture
def shard() -> Iterator[Turned]:
    made = Turned(SimulatedFiles(), limits=Limits(new_topic_visits_per_second_max=10_000))
    yield made
    made.end()


def crowd(shard: Turned, qos: int = 0) -> list[Connection]:
    """Sessions with as many filters as each may have."""
    return [subscribed(shard, f"g{n}", costly(n, FILTERS, LEVELS), qos) for n in range(SESSIONS)]


def test_a_new_topic_costs_two_nodes_a_filter_and_not_its_levels(shard: Turned) -> None:
    crowd(shard)
    before = visits(shard)
    Connection(shard, "p").say(wire.publish(new_topics(1, LEVELS)[0], b"x"))
    assert visits(shard) - before <= 2 * SESSIONS * FILTERS + LEVELS


def test_a_new_topic_is_matched_before_its_message_is_in_the_log_and_once(shard: Turned) -> None:
    greedy = crowd(shard)
    topic, matched = new_topics(1, LEVELS)[0], shard.parts.router.groups.filters
    before = matched.visits
    shard.parts.router.groups.match(topic)
    cost = matched.visits - before
    assert cost > AHEAD_VISITS
    publisher, before = Connection(shard, "p"), visits(shard)
    publisher.send(wire.publish(topic, b"x"))
    ends = []
    for _ in range(8):
        ends.append((shard.store.partitions[1].next_lsn, matched.visits - before == cost))
        shard.turn()
    assert ends[0] == (0, False) and ends[-1] == (1, True), "in more than one turn, and once"
    assert (1, False) not in ends
    assert not shard.parts.router.delivery.has_deferred()
    for client in greedy:
        assert payloads(client.take()) == [b"x"]


def test_who_creates_expensive_topics_waits_and_others_are_served_in_the_turn_in_which_they_publish(
    shard: Turned,
) -> None:
    crowd(shard)
    listener = subscribed(shard, "listener", ["innocent"])
    innocent, flooders = Connection(shard, "innocent"), [Connection(shard, f"p{n}") for n in range(10)]
    innocent.say(wire.publish("innocent", b"first"))
    listener.take()
    before = visits(shard)
    for number, flooder in enumerate(flooders):
        flooder.send(*[wire.publish(f"t{number}-{n}" + "/a" * (LEVELS - 1), b"x") for n in range(50)])
    turns = 100
    for number in range(turns):
        innocent.send(wire.publish("innocent", b"%d" % number))
        shard.turn()
        assert payloads(listener.take()) == [b"%d" % number]
        assert not innocent.is_held
        shard.monotonic += 0.01
    spent = visits(shard) - before
    # A second of the rate, the burst before it, and what the last topic was over it.
    assert spent <= 3 * 10_000 + 10 * (2 * SESSIONS * FILTERS + FREE_VISITS + LEVELS)
    assert all(flooder.is_held for flooder in flooders)


def test_a_flood_goes_on_as_its_budget_refills_in_order_and_nothing_is_lost(shard: Turned) -> None:
    greedy = crowd(shard, 1)
    publisher = Connection(shard, "p")
    topics = new_topics(12, LEVELS)
    publisher.send(*[wire.publish(topic, b"%d" % number, 1, 1 + number) for number, topic in enumerate(topics)])
    for _ in range(200):
        shard.settle()
        shard.monotonic += 0.1
    assert not publisher.is_held and not publisher.has_unread
    assert len([packet for packet in publisher.take() if packet.packet_id]) == len(topics)
    for client in greedy:
        assert payloads(client.take()) == [b"%d" % number for number in range(len(topics))]


def test_topics_that_are_known_are_taken_from_a_publisher_that_waits_for_nothing_else(shard: Turned) -> None:
    crowd(shard)
    publisher, other = Connection(shard, "p"), Connection(shard, "q")
    other.say(wire.publish("known", b"0"))
    for topic in new_topics(30, LEVELS):
        publisher.send(wire.publish(topic, b"x"))
        shard.turn()
    assert publisher.is_held
    listener = subscribed(shard, "listener", ["known"])
    other.say(wire.publish("known", b"1"))
    assert not other.is_held and payloads(listener.take()) == [b"1"]


def test_a_turn_takes_new_topics_until_its_visits_are_used_up(shard: Turned) -> None:
    shard.parts.clients.broker.limits = Limits(new_topic_visits_per_second_max=0)
    crowd(shard)
    publishers, most = [Connection(shard, f"p{n}") for n in range(30)], 0
    for number, publisher in enumerate(publishers):
        publisher.send(*[wire.publish(f"t{number}-{n}" + "/a" * (LEVELS - 1), b"x") for n in range(5)])
    for _ in range(1000):
        before = visits(shard)
        shard.turn()
        most = max(most, visits(shard) - before)
        shard.monotonic += 0.05
        if not any(publisher.has_unread for publisher in publishers):
            break
    assert not any(publisher.has_unread for publisher in publishers)
    assert AHEAD_VISITS // 2 < most <= AHEAD_VISITS


@pytest.mark.parametrize("connected", [True, False])
def test_a_disconnected_session_s_filters_cost_what_a_connected_one_s_do(connected: bool) -> None:
    shard, costs = Turned(SimulatedFiles()), []
    for away in (connected, not connected):
        client = Connection(shard, f"lasting {away}", clean=False, properties=[(0x11, 600)])
        filters = costly(7, FILTERS, LEVELS)
        for first in range(0, len(filters), 8):
            client.say(wire.subscribe(1 + first, [(each, 1) for each in filters[first : first + 8]]))
        while client.has_unread or client.is_held:
            shard.turn()
        if away:
            client.link.lost("gone")
        publisher, before = Connection(shard, f"p {away}"), visits(shard)
        publisher.say(wire.publish(f"{away}" + "/a" * (LEVELS - 1), b"x"))
        costs.append(visits(shard) - before)
        client.link.lost("gone")
        again = Connection(shard, f"lasting {away}", clean=True)
        again.link.lost("gone")
        while shard.parts.router.groups.ended:
            shard.turn()
    assert costs[0] == costs[1]
    shard.end()


def test_the_filters_of_an_address_have_a_bound_however_many_sessions_it_opens() -> None:
    limits = Limits(all_wildcard_levels_max=1000)
    shard = Turned(SimulatedFiles(), limits=limits)
    codes = []
    for number in range(4):
        client = Connection(shard, f"g{number}", clean=False, properties=[(0x11, 600)])
        client.say(wire.subscribe(1, [(each, 0) for each in costly(number, 8, LEVELS)]))
        while client.has_unread or client.is_held:
            shard.turn()
        shard.settle()
        codes += [code for packet in client.take() for code in packet.codes]
        client.link.lost("gone")  # which frees nothing: the session stays
    assert codes.count(0) == 500 // LEVELS and set(codes) == {0, 0x97}
    why = [fields["why"] for name, fields in shard.events if name == "subscribe.refused"]
    assert why and all("of 1000 levels from a wildcard on, and what is free is for others" in each for each in why)
    back = Connection(shard, "g0", clean=True)
    back.say(wire.subscribe(1, [(costly(9, 1, LEVELS)[0], 0)]))
    shard.settle()
    assert [packet.codes for packet in back.take()] == [[0]], "what its session had is free again"
    shard.end()
