"""Groups while the coordinator moves: what was answered never goes back, and a partition has one owner in a generation.

However leaders change, die, or go on without knowing that they are deposed, and however late messages arrive."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from rumq.kafka.protocol.errors import ErrorCode
from tests.kafka.groups.group_clients import KEY as MEMBERS
from tests.kafka.groups.group_clients import NETWORK, PARTITIONS, Box, request
from tests.kafka.nodes.moves import KEY, NODES, World

NODE = st.integers(0, NODES - 1)
PARTITION = st.integers(0, 1)
CLIENT = st.integers(0, 3)
HAPPENS = st.one_of(
    st.tuples(st.just("commit"), PARTITION, NODE),
    st.tuples(st.just("commit"), PARTITION, NODE),
    st.tuples(st.just("fetch"), PARTITION, NODE),
    st.tuples(st.just("elect"), NODE, st.integers(0, 3), st.booleans()),
    st.tuples(st.just("replicate")),
    st.tuples(st.just("hear"), st.integers(0, 3)),
    st.tuples(st.just("arrive"), st.integers(0, 3)),
    st.tuples(st.just("arrive"), st.integers(0, 3)),
    st.tuples(st.just("restart"), NODE),
    st.tuples(st.just("see"), NODE),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 0.6, 2.1, 5.1])),
    st.tuples(st.just("find"), CLIENT, NODE),
    st.tuples(st.sampled_from(["settle", "gather", "steps", "leave", "hold", "release"])),
    st.tuples(st.sampled_from(["settle", "gather"])),
)


async def happen(world: World, what: str, *of: Any) -> None:
    match what:
        case "elect":
            world.elect(of[0], of[1], dies=of[2])
        case "hear":
            world.terms[-1 - of[0] % len(world.terms)].hear()
        case "see":
            world.seats[of[0]].see()
        case "settle" | "gather":
            await getattr(world, what)()
        case _:
            getattr(world, what)(*of)
    await wait_all_tasks_blocked()


def in_world(scene: Any) -> None:
    clock = MockClock()

    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await scene(World(nursery, clock))
            nursery.cancel_scope.cancel()

    trio.run(run, clock=clock)


@settings(max_examples=400, deadline=None)
@given(happens=st.lists(HAPPENS, max_size=60))
def test_what_was_answered_never_goes_back_and_a_partition_has_one_owner_in_a_generation(happens: list[Any]) -> None:
    async def scene(world: World) -> None:
        await world.settle()
        for what, *of in happens:
            await happen(world, what, *of)
        world.release()
        await world.settle()
        serving = [each for each in world.seats if each.seat.groups is not None]
        assert [each.node for each in serving] == [world.leader.node], "in peace one node serves groups: the leader's"
        for partition in range(2):
            world.fetch(partition, world.leader.node)
        before = world.answers
        await world.settle()
        assert world.answers >= before + 2

    in_world(scene)


def test_a_deposed_coordinator_answers_no_commit_after_its_successor_has_loaded() -> None:
    async def scene(world: World) -> None:
        await world.settle()
        world.commit(0, 0)
        await world.settle()
        assert world.told == {0: 1}
        world.commit(0, 0)
        await wait_all_tasks_blocked()
        world.elect(1, 0, dies=False)
        old, first = world.seats[0], world.terms[0]
        await wait_all_tasks_blocked()
        world.seats[1].see()
        for _ in range(4):  # of the successor alone: the old one's question is still on its way
            for asking in [each for each in world.asked if each.term is world.leader]:
                world.asked.remove(asking)
                asking.arrive()
            world.replicate()
            world.leader.hear()
            await wait_all_tasks_blocked()
        assert world.seats[1].seat.groups is not None and old.seat.groups is not None
        while world.asked:
            world.arrive(0)
        first.hear()
        world.fetch(0, 0)
        await wait_all_tasks_blocked()
        assert world.told == {0: 1} and first.heard == len(world.committed) - 1
        world.wait(5.1)
        await wait_all_tasks_blocked()
        await world.settle()
        assert old.seat.groups is None and world.told == {0: 1}

    in_world(scene)


def test_what_a_killed_server_had_asked_is_refused_once_its_successor_has_taken_over() -> None:
    """It comes late, and would be behind what the successor has written since."""

    async def scene(world: World) -> None:
        await world.settle()
        world.commit(0, 0)
        await wait_all_tasks_blocked()
        world.hold()
        world.restart(0)
        await world.settle()
        world.commit(0, 0)
        await world.settle()
        assert world.told == {0: 2}
        world.release()
        await world.settle()
        world.elect(1, 0, dies=True)
        await world.settle()
        world.fetch(0, 1)
        await world.settle()
        assert world.told == {0: 2}

    in_world(scene)


def test_a_successor_tells_nothing_that_is_not_committed() -> None:
    """The leader before wrote it, and no majority had it: the next leader but one may not have it."""

    async def scene(world: World) -> None:
        await world.settle()
        world.commit(0, 0)
        await wait_all_tasks_blocked()
        while world.asked:
            world.arrive(0)
        world.elect(1, 1, dies=True)
        assert len(world.leader.log) == len(world.committed) + 1
        for _ in range(4):
            await wait_all_tasks_blocked()
            world.arrive(0)
            world.fetch(0, 1)
            world.wait(0.2)
        assert world.seats[1].seat.groups is None and not world.told
        world.elect(2, 0, dies=True)
        await world.settle()
        world.fetch(0, 2)
        await world.settle()
        assert world.told == {0: 0}

    in_world(scene)


@pytest.mark.parametrize("what", ["restart", "elect", "leave"])
def test_no_generation_is_given_twice(what: str) -> None:
    """By a server that starts again, by the next node, or by a group that was forgotten."""

    async def scene(world: World) -> None:
        await world.gather()
        given = dict(world.given)
        assert len(given) == PARTITIONS
        match what:
            case "restart":
                world.restart(0)
            case "elect":
                world.elect(1, 0, dies=True)
            case _:
                world.leave()
        await world.gather()
        await world.gather()
        assert len(world.given) >= 2 * PARTITIONS and given.items() <= world.given.items()

    in_world(scene)


def test_members_who_wait_are_sent_to_the_coordinator_when_theirs_has_lost_its_office() -> None:
    async def scene(world: World) -> None:
        await world.settle()
        groups = world.seats[0].seat.groups
        assert groups is not None
        answers: list[Any] = []

        async def join() -> None:
            answers.append(await groups.join(MEMBERS, NETWORK, request(names_first=False)))

        world.nursery.start_soon(join)
        await wait_all_tasks_blocked()
        assert not answers
        world.elect(1, 0, dies=True)
        await world.settle()
        assert [each.error for each in answers] == [ErrorCode.NOT_COORDINATOR]
        await join()
        assert answers[-1].error == ErrorCode.NOT_COORDINATOR, "whoever comes later to what has ended"
        assert await groups.commit(KEY, []) == ErrorCode.NONE and Box().found == []

    in_world(scene)
