"""Which node runs the bridges: the one that leads shard 0, as long as no other one can have taken them over."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rumq.admin.socket.held_values import HeldValues, Named
from rumq.admin.socket.kept_values import KeptQuestion, KeptReply
from rumq.bridge.nodes.bridge_seat import AGAIN_SECONDS, CONFIRM_SECONDS, FAULT_SECONDS, BridgeSeat
from rumq.cluster.control.records import View
from tests.bridge.nodes.test_kept_pairings import Journal
from tests.client.fake_broker import simulated
from tests.kafka.nodes.views import node, view

OLD = view(node("n1"), node("n3", keeps=False))


class Site:
    """The seat of node n1. running: turns in which its bridges run; told: events"""

    def __init__(self) -> None:
        self.journal, self.running = Journal(), list[int]()
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.is_away = False
        self.seat = BridgeSeat("n1", self.ask, self.run_bridges, lambda name, **more: self.told.append((name, more)))

    async def ask(self, asked: KeptQuestion, seconds: float) -> KeptReply:
        if self.is_away:
            raise FileNotFoundError("nobody leads here")
        return await self.journal.ask(asked, seconds)

    async def run_bridges(self, held: HeldValues, found: list[Named]) -> None:
        self.running.append(held.turn)
        try:
            await trio.sleep_forever()
        finally:
            self.running.remove(held.turn)


@simulated
async def test_the_leader_of_shard_0_runs_them_until_another_node_has_taken_them_over() -> None:
    site = Site()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.seat.run)
        await trio.sleep(1)
        assert not site.running, "it has seen no view"
        site.seat.see(view(leaders=("n2",)))
        await trio.sleep(1)
        assert not site.running and not site.journal.holder
        site.seat.see(view(leaders=("n1",)))
        await trio.sleep(1)
        assert site.running == [1] and site.seat.elsewhere == ""
        await site.journal.taken()  # by another node, of which this one has not heard
        await trio.sleep(2 * CONFIRM_SECONDS)
        assert site.running == [3], "it took them back: by what it knows it leads"
        site.seat.see(view(leaders=("n2",)))
        await trio.sleep(1)
        assert [name for name, _ in site.told] == ["bridges.led", "bridges.left"] * 2
        nursery.cancel_scope.cancel()


@simulated
async def test_they_end_at_once_when_another_node_leads() -> None:
    """So that its connections are not taken from those that still run."""
    site = Site()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.seat.run)
        site.seat.see(view(leaders=("n1",)))
        await trio.sleep(1)
        site.seat.see(view(leaders=("n2",)))
        await wait_all_tasks_blocked()
        assert not site.running
        nursery.cancel_scope.cancel()


@simulated
async def test_they_end_once_nobody_says_that_it_still_is_the_one() -> None:
    site = Site()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.seat.run)
        site.seat.see(view(leaders=("n1",)))
        await trio.sleep(1)
        site.is_away = True
        await trio.sleep(2 * CONFIRM_SECONDS)
        assert not site.running
        site.is_away = False
        await trio.sleep(2 * AGAIN_SECONDS)
        assert site.running == [2], "taken over anew"
        nursery.cancel_scope.cancel()


@simulated
async def test_a_version_that_would_lose_what_is_noted_keeps_them_from_running_and_is_named_once() -> None:
    site = Site()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.seat.run)
        for _ in range(3):
            site.seat.see(OLD)
            await wait_all_tasks_blocked()
        assert not site.running and not site.journal.holder
        [(name, said)] = site.told
        assert name == "bridges.refused" and "node n3 has a version" in said["why"]
        site.seat.see(view(leaders=("n1",)))
        await trio.sleep(1)
        assert site.running == [1]
        site.seat.see(OLD)
        await trio.sleep(2 * CONFIRM_SECONDS)
        assert not site.running
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (view(leaders=("n1",)), ""),
        (view(leaders=("n2",)), "node n2 runs the bridges: ask there"),
        (view(leaders=("",)), "shard 0 has no leader"),
        (OLD, "no node runs the bridges while node n3 has a version"),
    ],
)
def test_the_operator_is_told_which_node_runs_them(seen: View, words: str) -> None:
    site = Site()
    site.seat.see(seen)
    assert words in site.seat.elsewhere and bool(words) == bool(site.seat.elsewhere)


@simulated
async def test_what_cannot_be_taken_over_is_told_and_tried_again() -> None:
    """A file of before that cannot be read."""
    site = Site()

    async def failing(held: HeldValues, found: list[Named]) -> None:
        raise PermissionError(13, "Permission denied", "x.sessions")

    site.seat = BridgeSeat("n1", site.ask, failing, lambda name, **more: site.told.append((name, more)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(site.seat.run)
        site.seat.see(view(leaders=("n1",)))
        await trio.sleep(1.5 * FAULT_SECONDS)
        nursery.cancel_scope.cancel()
    assert site.journal.holder == 2, "with pauses"
    assert [name for name, _ in site.told][:3] == ["bridges.led", "bridges.refused", "bridges.left"]
