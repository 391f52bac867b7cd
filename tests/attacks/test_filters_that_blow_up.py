"""The attack: thousands of filters of `+` and `a`, as many levels as there may be, and messages to topics that match at
every level. Each is held against every node of every filter, which once stopped the broker for a second.

A session has a bound on levels behind wildcards, a turn has a bound on the nodes it looks at. Visits are counted, not
time. Topics that are new: `test_topics_that_starve.py`."""

import random
from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from router.matching.groups import GroupTable
from router.matching.topic_matching import MATCH_VISITS
from router.readers.reader import GroupKey
from router.readers.subscription import Subscription
from rumq.mqtt.topics import matches
from rumq.session.flow_control.limits import Limits
from rumq.session.state.subscribed_filters import wildcard_levels
from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.isolation.turns import Connection, Turned, payloads

LEVELS = Limits().topic_levels_max
VISITS_A_TURN = 1 << 10  # fewer than a broker's, so that fewer filters will do


def costly(seed: int, count: int, levels: int = LEVELS) -> list[str]:
    """Filters that all match a/a/.../a, and share little."""
    chance = random.Random(seed)
    made: dict[str, None] = {}
    while len(made) < count:
        made["/".join(["+", *(chance.choice("+a") for _ in range(levels - 1))])] = None
    return list(made)


@pytest.fixture
def shard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Turned]:
    monkeypatch.setattr("router.shard.VISITS_A_TURN", VISITS_A_TURN)
    made = Turned(SimulatedFiles())
    # As if the attacker had all the sessions it needs for many filters.
    made.parts.clients.broker.limits = Limits(wildcard_levels_max=1 << 30, subscriptions_bytes_max=1 << 30)
    yield made
    made.end()


def subscribed(shard: Turned, name: str, filters: list[str], qos: int = 0) -> Connection:
    client = Connection(shard, name)
    for first in range(0, len(filters), 8):
        client.say(wire.subscribe(1 + first, [(each, qos) for each in filters[first : first + 8]]))
    while client.has_unread or client.is_held:
        shard.turn()
        if client.is_held:
            shard.monotonic += 0.05  # it pays for topics that its filters have matched again
    assert all(packet.kind == Kind.SUBACK for packet in client.take())
    return client


def visits(shard: Turned) -> int:
    return shard.parts.router.groups.filters.visits


def known_topics(shard: Turned, count: int) -> list[str]:
    """Topics that somebody has published to. As subscriptions come, they are to be matched with the next message."""
    topics = new_topics(count)
    Connection(shard, "earlier").say(*[wire.publish(topic, b"early") for topic in topics])
    return topics


def new_topics(count: int, levels: int = LEVELS) -> list[str]:
    return ["/".join([f"t{number}", *["a"] * (levels - 1)]) for number in range(count)]


def test_a_session_s_filters_have_a_bound_of_levels_behind_wildcards() -> None:
    shard = Turned(SimulatedFiles())
    client = Connection(shard, "greedy")
    for first in range(0, 800, 8):
        client.say(wire.subscribe(1 + first, [(f, 0) for f in costly(1, 800)[first : first + 8]]))
    while client.has_unread or client.is_held:
        shard.turn()
    codes = [code for packet in client.take() for code in packet.codes]
    session = shard.parts.clients.broker.registry.sessions["greedy"]
    assert 0x97 in codes and session.asked.wildcard_levels <= Limits().wildcard_levels_max
    # The worst that one session can have a new topic cost: its nodes behind wildcards, and the root.
    publisher, before = Connection(shard, "p"), visits(shard)
    publisher.say(wire.publish(new_topics(1)[0], b"x"))
    assert visits(shard) - before <= Limits().wildcard_levels_max + LEVELS
    assert payloads(client.take()) == [b"x"]
    shard.end()


@pytest.mark.parametrize(
    ("topic_filter", "levels"),
    [("a/b/c", 0), ("a/b/+", 1), ("+/b/c", 3), ("a/#", 1), ("#", 1), ("a/+/b/+", 3), ("a+b/c", 2)],
)
def test_what_stands_behind_a_wildcard_counts(topic_filter: str, levels: int) -> None:
    assert wildcard_levels(topic_filter) == levels


@pytest.mark.parametrize("qos", [0, 1])
def test_a_turn_looks_at_a_bounded_number_of_nodes_and_nothing_is_lost_or_overtaken(shard: Turned, qos: int) -> None:
    """900 filters in three sessions: 1,700 nodes for each of four topics, with others between them."""
    topics = known_topics(shard, 4)
    greedy = [subscribed(shard, f"g{n}", costly(n, 300), 1) for n in range(3)]
    other = subscribed(shard, "other", ["#"], 1)
    publisher = Connection(shard, "p")
    publisher.say(wire.publish("known", b"0"))
    for client in (*greedy, other):
        client.take()
    expected = []
    for number, topic in enumerate(topics):
        expected += [b"new %d" % number, b"known %d" % number]
        publisher.send(
            wire.publish(topic, expected[-2], qos, 1 + 2 * number if qos else 0),
            wire.publish("known", expected[-1], qos, 2 + 2 * number if qos else 0),
        )
    shard.settle()
    spent = [visits(shard)]
    while shard.parts.router.delivery.has_deferred():
        before = visits(shard)
        shard.turn()
        spent.append(visits(shard) - before)
        assert len(spent) < 2000
    shard.settle()
    assert max(spent[1:]) <= VISITS_A_TURN + MATCH_VISITS
    assert len(spent) > 6, "it is not done in one turn"
    assert payloads(other.take()) == expected
    for client in greedy:
        assert payloads(client.take()) == expected[::2]


def test_known_topics_of_another_partition_and_acknowledgements_go_on_meanwhile(shard: Turned) -> None:
    (topic,) = known_topics(shard, 1)
    subscribed(shard, "greedy", costly(1, 2000))
    other = subscribed(shard, "listener", ["other/#"])
    publisher = Connection(shard, "p")
    publisher.say(wire.publish("other/known", b"0"))
    other.take()
    publisher.send(wire.publish(topic, b"x", 1, 7))
    shard.turn()
    while not (answers := publisher.take()):
        shard.wait()
        shard.turn()
    assert [packet.kind for packet in answers] == [Kind.PUBACK]
    assert shard.parts.router.delivery.has_deferred()
    for number in range(2):
        publisher.send(wire.publish("other/known", b"%d" % number))
        shard.turn()
        assert payloads(other.take()) == [b"%d" % number], "in the turn in which it was sent"
    assert shard.parts.router.delivery.has_deferred()


def test_nobody_keeps_a_match_from_ending_by_changing_subscriptions(shard: Turned) -> None:
    """Each turn a wildcard comes or goes, so that all routes are forgotten; what is under way goes on all the same."""
    topics = known_topics(shard, 3)
    greedy = subscribed(shard, "greedy", costly(1, 2000), 1)
    flapping, publisher = Connection(shard, "flapping"), Connection(shard, "p")
    publisher.send(*[wire.publish(topic, b"%d" % n) for n, topic in enumerate(topics)])
    turns = 0
    while shard.parts.router.delivery.has_deferred() or not turns:
        asked = [("+/" * (turns % 5) + "#", 0)]
        flapping.send(wire.subscribe(1, asked) if turns % 2 == 0 else wire.unsubscribe(1, ["+/" * (turns % 5) + "#"]))
        shard.turn()
        turns += 1
        assert turns < 400
    assert payloads(greedy.take()) == [b"0", b"1", b"2"]


def test_who_subscribes_or_leaves_while_a_topic_is_matched_is_served_as_it_should_be(shard: Turned) -> None:
    (topic,) = known_topics(shard, 1)
    subscribed(shard, "greedy", costly(1, 2000))
    leaving, staying = subscribed(shard, "leaving", ["#"]), subscribed(shard, "staying", ["+/#"])
    publisher = Connection(shard, "p")
    publisher.send(wire.publish(topic, b"x"))
    shard.turn()
    assert shard.parts.router.delivery.has_deferred()
    leaving.send(wire.unsubscribe(9, ["#"]))
    staying.send(wire.subscribe(9, [(topic, 0)]))
    late = Connection(shard, "late")
    late.send(wire.subscribe(9, [("+/a/#", 0)]))
    shard.settle()
    while shard.parts.router.delivery.has_deferred():
        shard.turn()
    publisher.say(wire.publish(topic, b"y"))
    while shard.parts.router.delivery.has_deferred():
        shard.turn()
    assert payloads(staying.take()) == [b"x", b"y"]
    assert payloads(leaving.take()) == []
    assert payloads(late.take())[-1:] == [b"y"]


def test_replays_shares_and_who_comes_back_go_on_in_pieces_too(shard: Turned) -> None:
    topics = new_topics(3)
    publisher = Connection(shard, "p")
    away = Connection(shard, "away", clean=False, properties=[(0x11, 600)])
    away.say(wire.subscribe(1, [("+/a/#", 1)]))
    away.link.lost("gone")
    publisher.say(*[wire.publish(topic, b"%d" % n, 1, 1 + n) for n, topic in enumerate(topics)])
    subscribed(shard, "greedy", costly(1, 2000))
    back = Connection(shard, "away", clean=False, properties=[(0x11, 600)])
    replaying, member = Connection(shard, "replaying"), Connection(shard, "member")
    replaying.send(wire.subscribe(1, [("$log/earliest/+/a/#", 1)]))
    member.send(wire.subscribe(1, [("$share/g/+/a/#", 1)]))
    shard.turn()
    publisher.send(*[wire.publish(topic, b"again %d" % n, 1, 1 + n) for n, topic in enumerate(topics)])
    for _ in range(400):
        before = visits(shard)
        shard.settle()
        assert visits(shard) - before <= 40 * VISITS_A_TURN
        if not shard.parts.router.delivery.has_deferred():
            break
    both = [b"0", b"1", b"2", b"again 0", b"again 1", b"again 2"]
    assert payloads(back.take()) == both
    assert payloads(replaying.take()) == both
    assert payloads(member.take()) == both[3:]


def test_a_match_in_pieces_finds_what_one_at_once_does_whatever_changes_meanwhile() -> None:
    chance = random.Random(3)
    filters = ["#", "+/#", "a/#", "a/+", "+/a", "a/a", "a/b", "+/+", "a/+/#", "$s/#", "+"]
    for _ in range(400):
        groups = GroupTable(1)
        there = [groups.private(GroupKey(frozenset(), shape=n)) for n in range(3)]
        topic = chance.choice(["a/a", "a/b", "b", "$s/a", "a"])
        model: set[tuple[int, str]] = set()
        groups.visits_left = 0
        route = None
        while route is None:
            number, one = chance.randrange(3), chance.choice(filters)
            if (number, one) in model:
                groups.discard(there[number], one)
                model.discard((number, one))
            else:
                groups.add(there[number], Subscription(one, number))
                model.add((number, one))
            groups.visits_left = chance.choice([0, 0, 1, 2])
            route = groups.route(topic)
        wanted = {n for n, f in model if matches(f, topic)}
        assert {there.index(group) for group, _ in route} == wanted
        assert sorted(group.forms[form].qos for group, form in route) == sorted(wanted)
        assert dict(route) == dict(groups.match(topic))


def test_filters_that_come_and_go_leave_nothing_behind(shard: Turned) -> None:
    """The attack: a client subscribes to filter after filter and unsubscribes again, without end."""
    client = Connection(shard, "restless")
    for number in range(100):
        client.say(wire.subscribe(1, [(f"{number}/+", 0)]), wire.unsubscribe(2, [f"{number}/+"]))
        client.take()
    groups = shard.parts.router.groups
    assert not groups.local_filters.counts and not groups.local_filters.changed and len(groups) == 0
