"""A reader with many subscriptions: one more costs its own filter, and its messages are those of any reader."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router import commands as c
from router.group_membership import SHARED_MAX
from router.matching.groups import FORMS_MAX, GroupTable
from router.readers.reader import GroupKey
from router.readers.subscription import Subscription
from rumq.mqtt.topics import matches
from tests.router.world import Client, World

EVERY_LEVEL = st.lists(st.sampled_from(["a", "b", "+"]), min_size=1, max_size=3)
FILTERS = st.tuples(EVERY_LEVEL, st.booleans()).map(lambda f: "/".join([*f[0], "#"] if f[1] else f[0]))
TOPICS = ["a", "b", "a/a", "a/b", "b/a", "b/b", "a/b/a", "b/a/b"]


@pytest.fixture
def world() -> World:
    return World(partitions=2, hot=1 << 20)


def many(world: World, client: Client, count: int) -> None:
    for number in range(count):
        world.subscribe(client, f"t/{number}", qos=1)


def matched(world: World) -> int:
    """How often topics were matched against all filters."""
    return sum(feed.routes.matched for feed in world.shard.feeds)


def got(client: Client, topic: str) -> int:
    return len(client.got["live"][topic])


def test_many_subscriptions_have_a_group_of_their_own_and_few_share_one(world: World) -> None:
    first, second = world.client("first"), world.client("second")
    for client in (first, second):
        world.attach(client)
        many(world, client, SHARED_MAX)
    assert first.subscriber.main and second.subscriber.main
    assert first.subscriber.main.group is second.subscriber.main.group
    many(world, first, SHARED_MAX + 1)
    assert first.subscriber.main.group is not second.subscriber.main.group
    own = first.subscriber.main.group
    many(world, first, 100)
    assert first.subscriber.main.group is own and len(own) == 100
    for number in range(SHARED_MAX // 2, 100):
        world.do(c.RemoveSubscription(first.subscriber, f"t/{number}"))
    for number in range(SHARED_MAX // 2, SHARED_MAX):
        world.do(c.RemoveSubscription(second.subscriber, f"t/{number}"))
    assert first.subscriber.main.group is second.subscriber.main.group
    assert len(world.shard.groups) == 1


def test_a_filter_without_wildcards_has_its_own_topic_matched_again_and_no_other(world: World) -> None:
    client = world.client("c")
    world.attach(client)
    many(world, client, 50)
    topics = [f"t/{number}" for number in range(200)]
    world.publish(topics, qos=0)
    before = matched(world)
    world.subscribe(client, "t/100", qos=1)
    world.subscribe(client, "t/100000", qos=1)  # nobody has published there
    world.publish(topics, qos=0)
    assert matched(world) == before + 1
    assert got(client, "t/100") == 1 and got(client, "t/101") == 0 and got(client, "t/49") == 2
    world.do(c.RemoveSubscription(client.subscriber, "t/100"))
    world.publish(topics, qos=0)
    assert matched(world) == before + 2
    assert got(client, "t/100") == 1


def test_a_filter_that_is_there_already_changes_nothing(world: World) -> None:
    client = world.client("c")
    world.attach(client)
    many(world, client, 50)
    world.subscribe(client, "t/#", qos=0)
    world.publish(["t/1", "t/77"], qos=0)
    before = matched(world)
    world.subscribe(client, "t/#", qos=0)
    world.publish(["t/1", "t/77"], qos=0)
    assert matched(world) == before
    world.subscribe(client, "t/#", qos=2)  # the same filter, another form
    world.publish(["t/77"], qos=0)
    assert [form.qos for form in client.forms[-1:]] == [2]


def test_a_wildcard_matches_topics_when_they_come_and_not_before(world: World) -> None:
    client = world.client("c")
    world.attach(client)
    world.publish([f"t/{number}" for number in range(500)], qos=0)
    before = matched(world)
    for number in range(30):
        world.subscribe(client, f"+/{number}", qos=0)
    assert matched(world) == before
    world.publish(["t/7", "t/7", "t/8"], qos=0)
    assert matched(world) == before + 2
    assert got(client, "t/7") == 2 and got(client, "t/8") == 1


def test_routes_that_no_topic_has_are_let_go(world: World) -> None:
    """Or clients that come and go with filters of their own would fill the memory."""
    for number in range(300):
        client = world.client(f"c{number}")
        world.attach(client)
        world.subscribe(client, "t", qos=0)
        world.do(c.AddSubscription(client.subscriber, Subscription("t", identifier=number + 1), False))
        world.publish(["t"], qos=0)
        world.do(c.End(client.subscriber, []))
    assert sum(len(feed.routes) for feed in world.shard.feeds) <= 1


def test_one_session_may_have_more_forms_than_a_byte_can_number(world: World) -> None:
    """A form for each subscription identifier, all of them in one chunk."""
    client = world.client("c")
    world.attach(client)
    for number in range(400):
        world.subscribe(client, f"t/{number}", identifier=number + 1)
    world.publish([f"t/{number}" for number in range(400)], qos=0)
    assert {form.identifiers for form in client.forms} == {(number + 1,) for number in range(400)}


def test_forms_are_numbered_anew_when_there_are_too_many(world: World) -> None:
    client = world.client("c")
    world.attach(client)
    many(world, client, SHARED_MAX + 1)
    main = client.subscriber.main
    assert main is not None
    rounds = FORMS_MAX + 10
    for number in range(rounds):
        world.subscribe(client, "x", identifier=number + 1)
        if number < 5 or number > rounds - 20:
            world.publish(["x"], qos=0)
        else:  # matched, as if published
            world.shard.groups.match("x")
    assert [form.identifiers for form in client.forms[-2:]] == [(rounds - 1,), (rounds,)]
    assert len(main.group.forms) < 20


def test_the_session_comes_back_in_another_shape(world: World) -> None:
    client = world.client("c")
    world.attach(client)
    many(world, client, 40)
    world.detach(client)
    client.subscriber.shape, client.subscriber.shape_changed = 4, True
    world.attach(client)
    assert client.subscriber.main is not None
    assert client.subscriber.main.group.wants.shape == (4, "c")
    world.publish(["t/3"], qos=0)
    world.settle()
    assert got(client, "t/3") == 1


@settings(max_examples=60, deadline=None)
@given(changes=st.lists(st.tuples(st.booleans(), FILTERS, st.integers(0, 2)), max_size=30))
def test_a_group_that_changes_in_place_matches_like_one_that_is_made_so(
    changes: list[tuple[bool, str, int]],
) -> None:
    groups = GroupTable(1)
    group = groups.private(GroupKey(frozenset()))
    model: dict[str, int] = {}
    for add, topic_filter, qos in changes:
        if add:
            assert groups.add(group, Subscription(topic_filter, qos)) is (model.get(topic_filter) != qos)
            model[topic_filter] = qos
        elif topic_filter in model:
            groups.discard(group, topic_filter)
            del model[topic_filter]
        else:
            with pytest.raises(KeyError):
                groups.discard(group, topic_filter)
        for topic in TOPICS:
            wanted = [qos for each, qos in model.items() if matches(each, topic)]
            route = groups.match(topic)
            assert [group.forms[form].qos for _, form in route] == ([max(wanted)] if wanted else [])
    assert sorted(groups.leave(group)) == sorted(model)
    assert len(groups) == 0 and groups.filters.count == 0
