"""However many groups a chunk goes to, each reader gets the rows and forms that a table of its own would give it.

The same happens in two worlds, in one of which everything is scattered."""

from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from router import commands as c
from router import delivery
from router.effects import Scatter
from tests.router.scatter_world import May, Scattered
from tests.router.world import UNLIMITED, Client

NEVER = 1 << 30
TOPICS = ["a", "b/1", "b/2", "b/3", "c", "c/d"]
FILTERS = ["#", "+", "a", "b/+", "b/#", "b/1", "b/2", "+/2", "c/#", "c"]
SOME = May(frozenset(["a", "b/1", "c"]))

Step = Callable[[Scattered, list[Client]], None]


def subscribe(number: int, topic_filter: str, qos: int, identifier: int, permit: May | None) -> Step:
    return lambda world, clients: world.subscribe(
        clients[number], topic_filter, qos=qos, identifier=identifier, permit=permit
    )


def replay(number: int, topic_filter: str) -> Step:
    return lambda world, clients: world.replay(clients[number], topic_filter)


def share(number: int, topic_filter: str) -> Step:
    return lambda world, clients: world.share(clients[number], "g", topic_filter)


def publish(topics: list[str], qos: int, visits: int) -> Step:
    def step(world: Scattered, _: list[Client]) -> None:
        world.shard.groups.visits_left = visits
        world.publish(topics, qos=qos)

    return step


def commit() -> Step:
    return lambda world, _: world.commit()


def turn(visits: int) -> Step:
    return lambda world, _: world.turn(visits)


def slow(number: int, credit: int) -> Step:
    def step(_: Scattered, clients: list[Client]) -> None:
        clients[number].credit = credit

    return step


def ready(number: int, credit: int) -> Step:
    def step(world: Scattered, clients: list[Client]) -> None:
        clients[number].credit = credit
        if clients[number].here:
            world.do(c.Ready(clients[number].subscriber))

    return step


def come_or_go(number: int) -> Step:
    def step(world: Scattered, clients: list[Client]) -> None:
        client = clients[number]
        (world.detach if client.here else world.attach)(client)

    return step


CLIENTS = 5
NUMBER = st.integers(0, CLIENTS - 1)
FILTER = st.sampled_from(FILTERS)
SUBSCRIPTIONS = st.one_of(
    st.builds(subscribe, NUMBER, FILTER, st.integers(0, 1), st.integers(0, 1), st.sampled_from([None, None, SOME])),
    st.builds(subscribe, NUMBER, FILTER, st.integers(0, 1), st.integers(0, 1), st.sampled_from([None, None, SOME])),
    st.builds(replay, NUMBER, FILTER),
    st.builds(share, NUMBER, FILTER),
)
PUBLISH = st.builds(
    publish,
    st.lists(st.sampled_from(TOPICS), min_size=1, max_size=12),
    st.integers(0, 1),
    st.sampled_from([UNLIMITED, UNLIMITED, 20, 0]),
)
STEPS = st.one_of(
    PUBLISH,
    PUBLISH,
    st.builds(commit),
    st.builds(turn, st.sampled_from([UNLIMITED, 20])),
    st.builds(slow, NUMBER, st.integers(0, 4)),
    st.builds(ready, NUMBER, st.sampled_from([1, 3, UNLIMITED])),
    st.builds(come_or_go, NUMBER),
)


def outcome(groups_min: int, subscriptions: list[Step], steps: list[Step]) -> Scattered:
    """The world in which everybody has taken everything in the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "GROUPS_MIN", groups_min)
        world = Scattered()
        clients = [world.client(f"c{number}") for number in range(CLIENTS)]
        for client in clients:
            world.attach(client)
        world.another_shard("shard", "b/+")
        for step in [*subscriptions, *steps]:
            step(world, clients)
        for client in clients:
            if not client.here:
                world.attach(client)
        world.settle()
        while world.shard.delivery.has_deferred():
            world.turn()
            world.settle()
        assert not world.gone
        return world


EVERYBODY: list[Step] = [
    subscribe(number, topic_filter, 0, 0, None) for number, topic_filter in enumerate(["a", "b/1", "b/2", "c", "b/+"])
]


@settings(max_examples=200, deadline=None)
@given(st.lists(SUBSCRIPTIONS, min_size=1, max_size=12), st.lists(STEPS, min_size=1, max_size=12))
@example(EVERYBODY, [publish([*TOPICS, *TOPICS], 1, UNLIMITED)])
@example(
    [*EVERYBODY, subscribe(0, "b/#", 1, 1, SOME), share(1, "#"), replay(2, "b/+")],
    [slow(0, 1), publish([*TOPICS, *TOPICS], 1, 20), ready(0, 1), commit(), publish(TOPICS, 0, 20)],
)
def test_readers_get_what_tables_would_give_them(subscriptions: list[Step], steps: list[Step]) -> None:
    """The same rows, in the same forms and in the same order, whoever is slow or away in between."""
    tables, scattered = (outcome(groups_min, subscriptions, steps) for groups_min in (NEVER, 1))
    assert not any(isinstance(effect, Scatter) for effect in tables.effects)
    for key in tables.got_by.keys() | scattered.got_by.keys():
        _, reader = key
        if isinstance(reader, int):
            assert scattered.got_by[key] == tables.got_by[key], key
            assert scattered.withheld_from[key] == tables.withheld_from[key], key
    # Which member of a shared group gets a row depends on who is slow when: together they get each once.
    assert shared(scattered) == shared(tables)


def shared(world: Scattered) -> dict[object, list[int]]:
    found: dict[object, list[int]] = defaultdict(list)
    for (_, group), rows in world.got_by.items():
        if not isinstance(group, int):
            found[group] += [row.lsn for row in rows]
    return {group: sorted(lsns) for group, lsns in found.items()}
