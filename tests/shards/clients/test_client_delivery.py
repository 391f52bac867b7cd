"""What one connection asks of deliveries: subscriptions that other shards confirm, and readers that go on."""

from collections.abc import Callable
from typing import Any

import pytest

from rumq.loop.read_gate import ReadGate
from rumq.loop.scheduler import ShardClock, TimerQueue
from rumq.shards.clients.client_delivery import ClientDelivery
from rumq.shards.turn.step_input import empty_input

ASKED = [("$share/g/t", "t")]


class World:
    """is_newest: this shard may answer"""

    def __init__(self, *, confirms: bool | None = None) -> None:
        """confirms: what the other shards answer; None: there are none"""
        self.confirmed: list[tuple[list[tuple[str, str]], bool]] = []
        self.is_newest = True
        self._confirms = confirms
        self.clock = ShardClock(lambda: (0, 1.0))
        self.timers = TimerQueue(self.clock)
        self.gathered = empty_input(1)
        self.again: list[Any] = []
        self.delivery = ClientDelivery(
            self.gathered, lambda: None, self.again.append, ReadGate(lambda: self.is_newest, self.timers),
            None if confirms is None else self,
        )  # fmt: skip

    def confirm_subscriptions(
        self, asked: list[tuple[str, str]], then: Callable[[], None], *, publishers: bool
    ) -> bool:
        self.confirmed.append((asked, publishers))
        return bool(self._confirms)

    def is_home_away(self, key: str) -> bool:
        return key == "$share/away/t"


def test_readers_go_on_in_this_turn_or_in_the_next_one() -> None:
    world, link, transport = World(), object(), object()
    world.delivery.refresh(link)
    world.delivery.in_next_turn(transport)  # type: ignore[arg-type]
    assert list(world.gathered.ready.now) == [link] and world.gathered.ready.next_turn == [transport]
    assert world.delivery.commands is world.gathered.commands


def test_with_one_shard_every_subscription_is_confirmed() -> None:
    assert World().delivery.confirm(ASKED, lambda: None)


def test_homes_of_groups_are_away_only_if_there_are_other_shards() -> None:
    several = World(confirms=True).delivery
    assert several.is_home_away("$share/away/t") and not several.is_home_away("$share/g/t")
    assert not World().delivery.is_home_away("$share/away/t")


@pytest.mark.parametrize("confirms", [True, False])
def test_with_several_the_others_confirm_it(confirms: bool) -> None:
    world = World(confirms=confirms)
    assert world.delivery.confirm(ASKED, lambda: None, publishers=True) is confirms
    assert world.confirmed == [(ASKED, True)]


def test_r15_a_subscription_waits_while_another_leader_may_have_newer_retained_messages() -> None:
    world, called = World(confirms=True), []
    world.is_newest = False
    assert not world.delivery.confirm(ASKED, lambda: called.append(1))
    world.timers.run_due(lambda task, call: call())
    assert not called and not world.confirmed
    world.is_newest = True
    world.clock.monotonic += 1.0
    world.timers.run_due(lambda task, call: call())
    world.timers.run_next_turn(lambda task, call: call())
    assert called and world.confirmed == [(ASKED, False)]
