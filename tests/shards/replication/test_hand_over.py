"""A planned hand-over: asked once, when the successor has everything; given up in time."""

from rumq.shards.replication.hand_over import (
    CATCH_UP_SECONDS_MAX,
    CLAIM_SECONDS_MAX,
    HOLD_AFTER_SECONDS,
    PENDING_SECONDS_MAX,
    SETTLE_SECONDS_MAX,
    HandOver,
)


class Clients:
    """said: what was asked of them"""

    def __init__(self) -> None:
        self.settled = False
        self.said: list[str] = []

    def hold(self) -> None:
        self.said.append("hold")

    def is_settled(self) -> bool:
        return self.settled

    def note(self) -> None:
        self.said.append("note")

    def tell_noted(self) -> None:
        self.said.append("tell noted")

    def release(self) -> None:
        self.said.append("release")


class World:
    def __init__(self, clients: Clients | None = None) -> None:
        self.written = self.full = False
        self.asked: list[str] = []
        self.failed: list[str] = []
        self.settled = False
        self.frozen = [False]
        self.hand_over = HandOver(
            "n2", 100.0, commit=self, has_all=lambda peer: self.full, succeed=self.asked.append,
            done=self.failed.append, clients=clients,
        )  # fmt: skip

    def is_written(self) -> bool:
        return self.written

    def is_settled(self) -> bool:
        return self.settled or self.written

    def freeze(self, is_frozen: bool) -> None:
        self.frozen.append(is_frozen)


def test_the_successor_is_asked_once_when_nothing_is_pending_and_it_has_all() -> None:
    world = World()
    world.hand_over.look(100.0)
    world.written = True
    world.hand_over.look(100.01)
    assert world.asked == [] and not world.frozen[-1]
    world.full = True
    for now in (100.02, 100.5, 101.9):
        world.hand_over.look(now)
    assert world.asked == ["n2"] and not world.hand_over.is_over and world.frozen[-1]


def test_after_a_moment_only_what_is_pending_then_is_written() -> None:
    world = World()
    world.full = True
    world.hand_over.look(100.0 + PENDING_SECONDS_MAX)
    assert not world.frozen[-1]  # what a turn has taken comes first
    world.hand_over.look(100.1 + PENDING_SECONDS_MAX)
    assert world.frozen[-1] and world.asked == []
    world.settled = True
    world.hand_over.look(100.2 + PENDING_SECONDS_MAX)
    assert world.asked == ["n2"]


def test_a_successor_that_does_not_claim_is_given_up() -> None:
    world = World()
    world.written = world.full = True
    world.hand_over.look(109.0)
    world.hand_over.look(109.0 + CLAIM_SECONDS_MAX)
    assert world.failed == ["it did not take office in time"] and world.hand_over.is_over
    assert not world.frozen[-1]
    world.hand_over.look(200.0)
    assert len(world.failed) == 1


def test_a_successor_that_does_not_catch_up_is_given_up() -> None:
    world = World()
    world.hand_over.look(100.0 + CATCH_UP_SECONDS_MAX)
    assert world.failed == ["it did not get everything in time"] and world.asked == []


def test_clients_are_held_once_the_successor_has_nearly_everything_and_noted_once_they_wait_for_nothing() -> None:
    clients = Clients()
    world = World(clients)
    world.written = True
    world.hand_over.look(100.0)
    assert clients.said == []
    world.full = True
    world.hand_over.look(100.01)
    assert clients.said == ["hold"] and world.asked == []
    clients.settled = True
    world.hand_over.look(100.02)
    assert clients.said == ["hold", "hold", "note"] and world.asked == []
    world.hand_over.look(100.03)  # what was noted is written, and the successor has it
    assert world.asked == ["n2"] and clients.said[3:] == ["tell noted"]


def test_a_successor_that_never_has_quite_everything_does_not_keep_clients_from_being_held() -> None:
    clients = Clients()
    world = World(clients)
    world.hand_over.look(100.0 + HOLD_AFTER_SECONDS)
    assert clients.said == ["hold"]


def test_who_waits_for_too_long_is_not_waited_for() -> None:
    clients = Clients()
    world = World(clients)
    world.written = world.full = True
    world.hand_over.look(100.0)
    world.hand_over.look(100.0 + SETTLE_SECONDS_MAX)
    assert clients.said[-1] == "note"


def test_clients_go_on_here_if_nobody_takes_office() -> None:
    clients = Clients()
    world = World(clients)
    clients.settled = world.written = world.full = True
    world.hand_over.look(100.0)
    world.hand_over.look(100.1)
    world.hand_over.look(100.1 + CLAIM_SECONDS_MAX)
    assert clients.said[-1] == "release" and world.failed == ["it did not take office in time"]


def test_clients_that_were_never_held_are_not_released() -> None:
    clients = Clients()
    world = World(clients)
    world.hand_over.look(100.0 + CATCH_UP_SECONDS_MAX)
    assert clients.said == [] and world.hand_over.is_over
