"""The other shards: who dials whom, what they are told together, and what retention and a stop hear of them."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.loop.fault_guard import ShardEvents
from rumq.net.frames import encode
from rumq.net.pump import Pump
from rumq.net.turn_handler import TurnHandler
from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import STEADY_SECONDS, LinkRetries
from rumq.shards.bus.dialers import PairDialer
from rumq.shards.peers.peers import Peers
from tests.shards.bus.world import Hand
from tests.simulation.network import Door, Doors, Network, Poller


class Other:
    """Another shard. said: to it, in order"""

    def __init__(self, index: int) -> None:
        self.link: Any = None
        self.has_begun = self.is_known = True
        self.is_drained = False
        self.parts = SimpleNamespace(owner=SimpleNamespace(unacknowledged_bytes=0))
        self.partitions = [SimpleNamespace(index=10 * index), SimpleNamespace(index=10 * index + 1)]
        self.retention = SimpleNamespace(needs={}, trimmable=m.Trimmable(index, []))
        self.said: list[m.AnyMessage] = []
        self.told_needs: list[dict[int, int]] = []
        self.received = self.drained = lambda *_: None
        self.lost: Callable[[str], None] = lambda why: None
        self.turns = 0
        self.is_last = False

    def set_last(self, is_last: bool) -> None:
        self.is_last = is_last

    def linked(self, link: Any) -> None:
        self.link = link

    def say(self, message: m.AnyMessage) -> bool:
        self.said.append(message)
        return True

    def tell_needs(self, needs: dict[int, int]) -> None:
        self.told_needs.append(needs)

    def end_turn(self) -> None:
        self.turns += 1


class World:
    """Shard 1 of 3."""

    def __init__(self, index: int = 1) -> None:
        self.hand = Hand(index)
        network = Network()
        poller = Poller(network)
        self.doors = [Door(network.next_fd()) for _ in range(3)]
        self.here = Doors(network, self.doors, index, poller)
        self.network = network
        epoll: Any = lambda: poller  # noqa: E731
        self.pump = Pump(TurnHandler(), epoll=epoll)
        self.others = {at: Other(at) for at in range(3) if at != index}
        self.is_draining = False
        others: Any = self.others
        doors: Any = self.here
        self.peers = Peers(
            index, others, PairDialer(doors, index), self.hand, LinkRetries(self.hand, self.hand), lambda: self.pump,
            is_draining=lambda: self.is_draining, tally=lambda tally: None,
        )  # fmt: skip

        for at, other in self.others.items():
            other.lost = partial(self.peers.lost, at)

    def dialled(self) -> list[int]:
        """The shards at whose doors something waits, which is taken away."""
        self.here.flush()
        found = [at for at, door in enumerate(self.doors) if door.waiting]
        for door in self.doors:
            door.waiting.clear()
        return found


@pytest.mark.parametrize(("index", "dialled"), [(0, []), (1, [0]), (2, [0, 1])])
def test_a_shard_dials_those_of_lower_index_so_that_each_two_have_one_link(index: int, dialled: list[int]) -> None:
    world = World(index)
    world.peers.dial()
    assert world.dialled() == dialled
    assert [at for at, other in world.others.items() if other.link is not None] == dialled
    assert len(world.pump.connections) == len(dialled)


def test_what_comes_through_the_door_is_the_link_of_who_dialled() -> None:
    world = World()
    ours, _ = world.network.pair("bus", "bus")
    world.here.takers["bus"](ours, "2", b"", 0)
    assert world.peers.is_linked(2) and not world.peers.is_linked(0)
    link = world.others[2].link
    assert link.transport.link is link and link.transport.peer == "shard 2"


@pytest.mark.parametrize(("shard", "dialled"), [(0, [0]), (2, [])])
def test_a_shard_that_is_lost_is_told_and_dialled_again_by_the_one_of_higher_index(
    shard: int, dialled: list[int]
) -> None:
    world = World()
    world.peers.lost(shard, "died")
    assert world.hand.events == [("shard.lost", {"shard": shard, "why": "died", "times": 1})]
    assert world.dialled() == dialled


def fails(*_: object) -> None:
    raise ValueError("it says nothing that is understood here")


def dials(world: World) -> list[tuple[float, Callable[[], None]]]:
    """Links that are to be made later: (seconds, call)."""
    return [(seconds, call) for seconds, call in world.hand.waiting if isinstance(call, partial)]


def failing_links(world: World, shard: int, count: int) -> list[float]:
    """How long the shard waits before each next link to another, whose hellos nobody understands."""
    events = ShardEvents(world.hand.tell)
    waits: list[float] = []
    for _ in range(count):
        world.hand.waiting.clear()
        try:
            fails()
        except ValueError:
            events.crashed(world.others[shard].link.transport)
        waits.append(sum(seconds for seconds, _ in dials(world)))
        for seconds, call in dials(world):
            world.hand.monotonic += seconds
            call()
    return waits


def test_links_that_end_soon_are_made_ever_later_and_that_is_told_ever_less_often() -> None:
    """Without a pause, two shards that did not understand each other took a core each, and wrote a line each time."""
    world = World()
    world.peers.dial()
    assert failing_links(world, 0, 8) == [0.0, 0.1, 0.5, 2.0, 10.0, 10.0, 10.0, 10.0]
    for name in ("shard.link_failed", "shard.lost"):
        told = [fields["times"] for each, fields in world.hand.events if each == name]
        assert told == [1, 2, 4, 8]


def test_a_link_that_was_sound_for_a_while_is_made_anew_at_once_and_its_fault_is_told() -> None:
    world = World()
    world.peers.dial()
    failing_links(world, 0, 3)
    link = world.others[0].link
    assert link.attempt == 4
    (proved,) = [call for _, call in world.hand.waiting if call == link.proved_sound]
    world.hand.monotonic += STEADY_SECONDS
    proved()
    world.hand.events.clear()
    assert failing_links(world, 0, 1) == [0.0]
    assert [(name, fields["times"]) for name, fields in world.hand.events] == [
        ("shard.link_failed", 1), ("shard.lost", 1),
    ]  # fmt: skip


def test_a_link_that_waits_to_be_made_anew_is_not_once_all_stop() -> None:
    world = World()
    world.peers.dial()
    failing_links(world, 0, 1)
    world.others[0].link.end()
    ((_, call),) = dials(world)
    world.dialled()
    world.is_draining = True
    call()
    assert world.dialled() == []


def test_while_all_stop_one_that_is_gone_is_no_event() -> None:
    world = World()
    world.is_draining = True
    world.peers.lost(0, "stopped")
    assert world.hand.events == [] and world.dialled() == []


def test_one_that_has_joined_is_told() -> None:
    world = World()
    world.peers.joined(2)
    assert world.hand.events == [("shard.linked", {"shard": 2})]


def test_a_message_waits_for_a_shard_to_begin_and_one_for_all_does_not() -> None:
    world = World()
    world.others[2].has_begun = False
    assert world.peers.say(0, m.Drained()) and not world.peers.say(2, m.Drained())
    assert not world.peers.say(7, m.Drained()), "there is none of that number"
    world.peers.say_all(m.Unwant(["a"]))
    assert [len(other.said) for other in world.others.values()] == [2, 1]


def test_a_shard_that_is_handed_over_reads_nothing_of_the_others_and_links_up_with_nobody() -> None:
    """What is handed over on a link that is not read would count as perhaps shown."""
    world = World()
    world.peers.dial()
    assert world.dialled() == [0]
    link = world.others[0].link
    world.peers.hold()
    assert link.transport.reading_paused and not world.others[0].is_last
    world.peers.tell_held()
    assert world.others[0].is_last and world.others[2].is_last
    ours, theirs = world.network.pair("bus", "bus")
    world.here.takers["bus"](ours, "2", b"", 0)
    assert theirs.over and not world.peers.is_linked(2), "it dials whoever follows"
    world.others[0].link = None
    world.peers.release()
    assert not world.others[0].is_last and world.dialled() == [0]
    world.here.takers["bus"](world.network.pair("bus", "bus")[0], "2", b"", 0)
    assert world.peers.is_linked(2)


def test_what_an_owner_has_said_counts_when_its_successor_is_seen_first() -> None:
    """That it has shown nothing that its successor does not have."""
    world = World()
    ours, theirs = world.network.pair("bus", "bus")
    world.here.takers["bus"](ours, "2", b"", 0)
    said: list[object] = []
    world.others[2].link._received = lambda message, raw: said.append(message)
    last = m.Mark(0, 0, 0, 0, 0, True)
    for part in encode(last, ()):
        theirs.send(part)
    ours.arrive(1 << 16)
    world.peers._leave(2)
    assert said == [last]


def test_a_turn_ends_for_each_of_them_and_all_are_known_once_each_is() -> None:
    world = World()
    world.peers.end_turn()
    assert [other.turns for other in world.others.values()] == [1, 1] and world.peers.all_known
    world.others[0].is_known = False
    assert not world.peers.all_known


# Retention


@pytest.mark.parametrize(
    ("needs", "here", "wanted"),
    [([], None, None), ([], 5, 5), ([7, 3], None, 3), ([7, 3], 5, 3), ([7], 5, 5)],
)
def test_a_record_is_wanted_as_long_as_a_session_in_any_shard_has_not_had_it(
    needs: list[int], here: int | None, wanted: int | None
) -> None:
    world = World()
    for other, lsn in zip(world.others.values(), needs, strict=False):
        other.retention.needs = {4: lsn, 5: 0}
    assert world.peers.wanted_lsn(4, here) == wanted


def test_each_owner_hears_what_sessions_here_need_of_its_own_partitions() -> None:
    world = World()
    world.peers.tell_needs({0: 3, 1: None, 20: 8, 21: 0}.get)
    assert [other.told_needs for other in world.others.values()] == [[{0: 3}], [{20: 8, 21: 0}]]


def test_what_each_said_last_of_its_segments() -> None:
    assert [each.log_bytes for each in World().peers.trimmable()] == [0, 2]


# Stop


@pytest.mark.parametrize(
    ("linked", "drained", "unacknowledged", "expected"),
    [(False, False, 9, True), (True, True, 0, True), (True, False, 0, False), (True, True, 9, False)],
)
def test_a_stop_waits_for_what_was_published_to_others_and_until_they_publish_nothing_more(
    linked: bool, drained: bool, unacknowledged: int, expected: bool
) -> None:
    world = World()
    other = world.others[2]
    other.link = SimpleNamespace(closed=False) if linked else None
    other.is_drained, other.parts.owner.unacknowledged_bytes = drained, unacknowledged
    assert world.peers.are_drained is expected
    world.peers.drain()
    assert other.said == [m.Drained()]
    world.peers.close()
    assert not linked or other.link.closed
