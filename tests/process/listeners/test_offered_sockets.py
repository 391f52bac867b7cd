"""What a shard makes of the sockets that it is offered before a reload."""

import os
import socket
from collections.abc import Iterator

import pytest

from rumq.errors import ConfigError
from rumq.net.sockets.fd_passing import FdPassing, make_shard_sockets
from rumq.process.listeners.listening_sockets import Doorways, ListeningSocket
from rumq.process.listeners.offered_sockets import LISTENER, OfferedSockets, SocketOffers
from rumq.settings.table import Listener, Settings

FIRST, SECOND, THIRD = Listener(host="::1"), Listener(port=2), Listener(port=3)


class World:
    """A supervisor that was started with one listener, and its only shard."""

    def __init__(self) -> None:
        self.doors = make_shard_sockets(1)
        self.passing = FdPassing(self.doors, 0, lambda seconds, call: None)
        self.offers = SocketOffers(self.doors, 1)
        self.shard = self.started(1)

    def started(self, next_number: int, *numbers: int) -> OfferedSockets:
        offered = OfferedSockets([0, *numbers], next_number)
        self.passing.takers[LISTENER] = offered.take
        return offered

    def offer(self, *listeners: tuple[int, Listener]) -> Settings:
        """Send the sockets of these, beside the first; returns the settings with them."""
        settings = Settings(listener=FIRST, more_listeners=tuple(each for _, each in listeners))
        made = [ListeningSocket(number, socket.socket()) for number in (0, *(number for number, _ in listeners))]
        self.offers.send(settings, Doorways(made, [number for number, _ in made], 9))
        for each in made:
            each.sock.close()
        return settings


@pytest.fixture
def world() -> Iterator[World]:
    before = len(os.listdir("/proc/self/fd"))
    made = World()
    yield made
    for door in made.doors:
        door.inside.close()
        door.outside.close()
    assert len(os.listdir("/proc/self/fd")) == before, "every socket that is not in use is closed"


def taken(world: World, old: Settings, new: Settings) -> list[int]:
    """Reload; returns the numbers of the listeners that are added."""
    world.passing.hear()
    change = world.shard.prepare(old, new)
    world.shard.commit(change, new)
    for sockets in change.added.values():
        for sock in sockets:
            sock.close()
    return list(change.added)


def test_a_new_listener_comes_with_its_number(world: World) -> None:
    new = world.offer((4, SECOND), (3, THIRD))
    assert taken(world, Settings(listener=FIRST), new) == [4, 3]


def test_the_last_offer_counts_if_two_come_before_a_reload(world: World) -> None:
    """The listener of the first was removed, and came again as another one."""
    world.offer((1, SECOND))
    new = world.offer((2, SECOND))
    assert taken(world, Settings(listener=FIRST), new) == [2]


def test_what_is_offered_once_more_is_not_taken_twice(world: World) -> None:
    new = world.offer((1, SECOND))
    assert taken(world, Settings(listener=FIRST), new) == [1]
    newer = world.offer((1, SECOND), (2, THIRD))
    assert taken(world, new, newer) == [2]


def test_a_shard_that_is_started_again_leaves_what_its_predecessor_was_offered(world: World) -> None:
    new = world.offer((1, SECOND))
    world.shard = world.started(3, 2)  # meanwhile 1 was removed, and 2 added
    assert taken(world, new, new) == []


def test_settings_that_were_written_meanwhile_are_refused_and_can_be_had_later(world: World) -> None:
    old = Settings(listener=FIRST)
    world.offer((1, SECOND))
    world.passing.hear()
    assert 1 in world.shard, "another shard may know it already"
    other = Settings(listener=FIRST, more_listeners=(THIRD,))
    with pytest.raises(ConfigError, match=r"listener number 2: .*localhost:3 mqtt.*send SIGHUP again"):
        world.shard.prepare(old, other)
    new = world.offer((2, THIRD))
    assert taken(world, old, new) == [2]
    assert 2 not in world.shard


def test_a_shard_that_hears_nothing_does_not_stop_its_supervisor(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rumq.process.listeners.offered_sockets.OFFER_SECONDS_MAX", 0.0)
    for _ in range(1000):
        new = world.offer((1, SECOND))
    world.passing.hear()
    world.shard._close_all()
    new = world.offer((1, SECOND))
    assert taken(world, Settings(listener=FIRST), new) == [1]
