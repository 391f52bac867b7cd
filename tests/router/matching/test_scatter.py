"""What of a chunk is sorted to many groups at once, and which groups need a table."""

from typing import Any

import pytest

from router import commands as c
from router.effects import CatchUpPaused, Deliver, Scatter, readers_served
from router.matching.scatter import GROUPS_MIN
from router.readers.reader import Reader
from router.readers.subscription import Subscription
from tests.router.scatter_world import May, Scattered
from tests.router.world import Client

GROUPS = GROUPS_MIN + 5  # of one topic each
NAMES = [f"t/{n}" for n in range(GROUPS)]
CHUNK = [*NAMES, "t/0", "t/1", "other"]  # lsns 0 to 10


def crowded() -> Scattered:
    """A reader of each name, so that there are groups enough; nothing is published yet."""
    world = Scattered()
    for name in NAMES:
        reader = world.client(f"of {name}")
        world.attach(reader)
        world.subscribe(reader, name)
    return world


def how(world: Scattered, client: Client) -> list[str]:
    """How chunks went to a client."""
    found = []
    for effect in world.effects:
        if isinstance(effect, Scatter):
            served = [reader for _, readers, *_ in effect.parts for reader in readers]
        else:
            served = effect.readers
        found += [type(effect).__name__] * sum(reader.sink is client for reader in served)
    return found


ONLY_T1 = May(frozenset(["t/1"]))


@pytest.mark.parametrize(
    ("subscriptions", "lsns", "by"),
    [
        pytest.param([Subscription("t/2", 1)], [2], "Scatter", id="one route"),
        pytest.param([Subscription("t/1", 1)], [1, 9], "Scatter", id="one route, two rows apart"),
        pytest.param([Subscription("t/0"), Subscription("t/1")], [0, 1, 8, 9], "Scatter", id="two routes"),
        pytest.param([Subscription("t/3"), Subscription("t/1")], [1, 3, 9], "Scatter", id="two routes, mixed"),
        pytest.param(
            [Subscription(f"t/{n}") for n in range(4)], [0, 1, 2, 3, 8, 9], "Scatter", id="four routes of nine"
        ),
        pytest.param(
            [Subscription(f"t/{n}") for n in range(5)], [0, 1, 2, 3, 4, 8, 9], "Deliver", id="five routes of nine"
        ),
        pytest.param([Subscription("#")], [*range(11)], "Deliver", id="all routes"),
        pytest.param([Subscription("t/0", 1), Subscription("t/1", 0)], [0, 1, 8, 9], "Deliver", id="two forms"),
        pytest.param(
            [Subscription("t/1", permit=ONLY_T1), Subscription("t/2", permit=ONLY_T1)],
            [1, 9],
            "Deliver",
            id="one of two denied",
        ),
        pytest.param([Subscription("t/2", permit=ONLY_T1)], [], "Deliver", id="denied"),
        pytest.param([Subscription("nobody")], [], None, id="no row"),
    ],
)
def test_a_few_routes_in_one_form_are_scattered(
    subscriptions: list[Subscription], lsns: list[int], by: str | None
) -> None:
    world = crowded()
    client = world.client("c")
    world.attach(client)
    for each in subscriptions:
        world.do(c.AddSubscription(client.subscriber, each, False))
    world.publish(CHUNK, qos=0)
    got = world.got_by["c", 1]
    assert [row.lsn for row in got] == lsns
    options = {s.topic_filter: s.qos for s in subscriptions}
    assert [row.form.qos for row in got] == [options.get(CHUNK[lsn], 0) for lsn in lsns]
    assert how(world, client) == ([by] if by is not None else [])
    denied = [
        lsn for lsn, name in enumerate(CHUNK) for s in subscriptions if s.topic_filter == name and not s.covers(name)
    ]
    assert world.withheld_from["c", 1] == denied


def test_all_readers_of_a_group_are_served_with_one_part() -> None:
    world = crowded()
    same = [world.client(f"c{n}") for n in range(3)]
    for client in same:
        world.attach(client)
        world.subscribe(client, "t/0", qos=1)
    world.publish(CHUNK, qos=0)
    (effect,) = world.effects
    assert isinstance(effect, Scatter) and len(effect.parts) == GROUPS + 1
    for client in same:
        assert [row.lsn for row in world.got_by[client.name, 1]] == [0, 8]


def test_another_shard_and_a_shared_group_get_theirs_by_tables() -> None:
    """The bus forwards rows as they are; a shared group is split among its members."""
    world = crowded()
    there = world.another_shard("there", "t/1")
    here = world.client("here")
    world.attach(here)
    world.share(here, "g", "t/1")
    world.publish(CHUNK, qos=0)
    assert [row.lsn for row in world.got_by["there", 0]] == [1, 9]
    assert [row.lsn for row in world.got_by["here", "$share/g/t/1"]] == [1, 9]
    assert how(world, there) == how(world, here) == ["Deliver"]


def test_readers_of_committed_records_get_a_chunk_when_it_is() -> None:
    world = crowded()
    client = world.client("c")
    world.attach(client)
    world.replay(client, "t/1", "latest")
    while world.searches:
        world.answer_search()
    world.publish(CHUNK, qos=0)
    assert how(world, client) == []
    world.commit()
    assert len(how(world, client)) == 1
    assert [row.lsn for row in world.got_by["c", 1]] == [1, 9]


def test_readers_of_committed_records_are_scattered_to_apart() -> None:
    world = crowded()
    clients = [world.client(f"c{n}") for n in range(GROUPS)]
    for client, name in zip(clients, NAMES, strict=True):
        world.attach(client)
        world.replay(client, name, "latest")
    world.settle()
    world.publish(CHUNK, qos=0)
    world.commit()
    live, safe = world.effects
    assert isinstance(live, Scatter) and isinstance(safe, Scatter)
    for effect, committed_only in ((live, False), (safe, True)):
        assert [group.wants.committed_only for group, *_ in effect.parts] == [committed_only] * GROUPS
    assert [row.lsn for row in world.got_by["c1", 1]] == [1, 9]


def test_who_is_behind_or_away_is_in_no_part() -> None:
    world = crowded()
    behind, away = world.client("behind"), world.client("away")
    for client in (behind, away):
        world.attach(client)
        world.subscribe(client, "t/1", identifier=1 + (client is away))
    behind.credit = 1
    world.detach(away)
    world.publish(["t/1", "t/1"], qos=0)
    world.effects.clear()
    world.publish(CHUNK, qos=0)
    assert how(world, behind) == how(world, away) == []
    world.attach(away)
    world.settle()
    for client in (behind, away):
        assert [row.lsn for row in world.got_by[client.name, 1]] == [0, 1, 3, 11]


def test_with_few_groups_tables_cost_less() -> None:
    world = Scattered()
    for name in NAMES[1:GROUPS_MIN]:
        reader = world.client(name)
        world.attach(reader)
        world.subscribe(reader, name)
    world.publish(CHUNK, qos=0)
    assert {type(effect) for effect in world.effects} == {Deliver}
    assert len(world.effects) == GROUPS_MIN - 1


def test_readers_that_are_served_by_a_step_are_those_of_its_parts() -> None:
    """`readers_served`"""
    world = crowded()
    taken: list[set[Reader]] = []
    carry_out = world._carry_out

    def look(effect: Any, waiting: list[c.Command]) -> None:
        taken.append(readers_served(world.shard.delivery.effects))
        carry_out(effect, waiting)

    world._carry_out = look  # type: ignore[method-assign]
    client = world.client("c")
    world.attach(client)
    world.subscribe(client, "#")
    taken.clear()
    world.publish(CHUNK, qos=0)
    everybody = {reader for client in world.clients for reader in client.readers()}
    assert taken == [everybody, everybody] and len(everybody) == GROUPS + 1
    assert not any(isinstance(effect, CatchUpPaused) for effect in world.effects)
