"""Names of nodes: looked up beside the loop, and an old answer is better than none."""

from collections.abc import Callable

import pytest

from rumq.cluster.connections.host_addresses import FRESH_SECONDS, HostAddresses, look_up


class World:
    def __init__(self) -> None:
        self.now = 0.0
        self.answer: str | None = "10.0.0.1"
        self.jobs: list[Callable[[], None]] = []
        self.addresses = HostAddresses(self.look_up, self.jobs.append, lambda: self.now)

    def look_up(self, host: str) -> str:
        if self.answer is None:
            raise OSError("no such host")
        return self.answer

    def work(self) -> None:
        jobs, self.jobs[:] = list(self.jobs), []
        for job in jobs:
            job()


def test_a_name_is_known_a_little_later_and_asked_once() -> None:
    world = World()
    assert world.addresses.maybe_find("n1") is None
    assert world.addresses.maybe_find("n1") is None
    assert len(world.jobs) == 1
    world.work()
    assert world.addresses.maybe_find("n1") == "10.0.0.1" and not world.jobs


def test_a_name_that_moves_is_noticed_and_one_that_is_lost_keeps_its_address() -> None:
    world = World()
    world.addresses.maybe_find("n1")
    world.work()
    world.answer = "10.0.0.2"
    world.now += FRESH_SECONDS
    assert world.addresses.maybe_find("n1") == "10.0.0.1"
    world.work()
    assert world.addresses.maybe_find("n1") == "10.0.0.2"
    world.answer = None
    world.now += FRESH_SECONDS
    world.addresses.maybe_find("n1")
    world.work()
    assert world.addresses.maybe_find("n1") == "10.0.0.2"


def test_a_name_that_is_not_found_is_asked_again() -> None:
    world = World()
    world.answer = None
    for _ in range(2):
        assert world.addresses.maybe_find("n1") is None
        assert len(world.jobs) == 1
        world.work()


@pytest.mark.parametrize("literal", ["127.0.0.1", "::1"])
def test_an_address_needs_no_asking(literal: str) -> None:
    world = World()
    assert world.addresses.maybe_find(literal) == literal and not world.jobs
    assert look_up(literal) == literal
