"""One other shard: questions survive its death, and watermarks are sent when somebody waits for them."""

from types import SimpleNamespace
from typing import Any

import pytest

from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import LinkRetries
from rumq.shards.bus.peer import Parts, Peer, ThisShard
from rumq.shards.bus.peers import Peers
from tests.shards.bus.world import Hand

NONE = memoryview(b"")


class Link:
    def __init__(self) -> None:
        self.said: list[Any] = []
        self.closed = False

    def say(self, message: Any, *raw: Any) -> None:
        self.said.append(message)

    def end(self) -> None:
        self.closed = True


class Part:
    """Any part of a peer: what is called is noted."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.incoming: dict[int, Any] = {}
        self.reader, self.wants_marks = None, False
        self.partitions: list[Any] = []
        self.unacknowledged_bytes = 0

    def __getattr__(self, name: str) -> Any:
        return lambda *_: self.calls.append(name)


class World:
    def __init__(self) -> None:
        self.hand = Hand()
        self.owner, self.publisher, self.subscriber = Part(), Part(), Part()
        self.members, self.groups, self.links = Part(), Part(), Part()
        self.groups.weights = self.groups.handed = lambda home: {}  # type: ignore[attr-defined]
        self.interest: Any = SimpleNamespace(has_begun=False, wants_publishers=False, filters=lambda: ["a"])
        feed = SimpleNamespace(
            partition=SimpleNamespace(committed_lsn=4, first_lsn=1), committed_lsn=4, visible_lsn=5,
            mark=lambda committed: 5,
        )  # fmt: skip
        own: Any = [SimpleNamespace(index=0, first_lsn=1)]
        nothing: Any = SimpleNamespace(reasons=dict, full=set())
        here = ThisShard(0, 77, own, [feed], nothing, nothing)  # type: ignore[list-item]
        parts: Any = Parts(
            *(self.owner, self.publisher, self.subscriber, self.members, self.groups, Part(), Part())  # type: ignore[arg-type]
        )
        links: Any = self.links
        self.peer = Peer(1, here, parts, self.interest, links, self.hand)
        self.link = self.new_link()

    def new_link(self) -> Link:
        link: Any = Link()
        self.peer.linked(link)
        self.link = link
        return self.link

    def hello(self) -> None:
        self.peer.received(m.Hello(1, 88, {}), NONE)


@pytest.fixture
def world() -> World:
    return World()


def test_a_link_begins_with_hello_and_where_our_partitions_stand(world: World) -> None:
    assert world.link.said == [m.Hello(0, 77, {0: (1, 5)})]


def test_begin_waits_for_sessions_to_be_restored(world: World) -> None:
    world.hello()
    assert not world.peer.has_begun and "joined" in world.links.calls
    world.interest.has_begun = True
    world.peer.begin()
    assert world.link.said[-1] == m.Begin(["a"], {}, {}, {}) and world.peer.has_begun


def test_a_question_is_asked_again_over_the_next_link_until_it_is_answered(world: World) -> None:
    world.hello()
    answers: list[Any] = []
    world.peer.ask(lambda request: m.Want(request, ["a"]), lambda answer, _: answers.append(answer))
    assert world.link.said[-1] == m.Want(1, ["a"])
    world.peer.lost("died")
    again = world.new_link()
    world.hello()
    assert again.said[-1] == m.Want(1, ["a"])
    world.peer.received(m.Wanted(1), NONE)
    world.peer.received(m.Wanted(1), NONE)
    assert answers == [m.Wanted(1)]


def test_answers_in_pieces_end_with_the_last(world: World) -> None:
    answers: list[Any] = []
    world.peer.ask(lambda request: m.FindRetained(request, "#", {}), lambda answer, _: answers.append(answer))
    for more in (True, False, False):
        world.peer.received(m.Found(1, {}, [], more=more), NONE)
    assert len(answers) == 2


def test_all_parts_hear_of_its_end(world: World) -> None:
    world.hello()
    world.peer.needs = {0: 4}
    world.peer.lost("died")
    for part in (world.owner, world.publisher, world.subscriber, world.members, world.links):
        assert "lost" in part.calls
    assert "home_lost" in world.groups.calls and not world.peer.needs and not world.peer.say(m.Drained())


def test_watermarks_are_sent_at_once_where_a_publisher_waits_and_else_every_50_ms(world: World) -> None:
    world.hello()
    sequence = 0
    world.publisher.incoming = {
        0: SimpleNamespace(step_done=lambda: None, committed_sequence=lambda: sequence)
    }
    world.peer.end_turn()
    assert world.link.said[-1] == m.Mark(0, 0, 0, 4, 1)
    sent = len(world.link.said)
    world.peer.end_turn()
    assert len(world.link.said) == sent
    sequence = 3
    world.peer.end_turn()
    assert world.link.said[-1] == m.Mark(0, 3, 0, 4, 1)


def test_needs_are_sent_when_they_have_changed(world: World) -> None:
    world.peer.tell_needs({4: 9})
    world.peer.tell_needs({4: 9})
    assert world.link.said.count(m.Needs({4: 9})) == 1


# All peers


def peers_of(world: World) -> Peers:
    return Peers(
        0, {1: world.peer}, None, world.hand, LinkRetries(world.hand, world.hand), lambda: None,  # type: ignore[arg-type, return-value]
        is_draining=lambda: False, tally=lambda tally: None,
    )  # fmt: skip


def test_nothing_is_said_to_a_shard_that_has_not_begun(world: World) -> None:
    peers = peers_of(world)
    assert not peers.say(1, m.Drained()) and not peers.say(5, m.Drained())
    world.interest.has_begun = True
    world.hello()
    assert peers.say(1, m.Drained()) and peers.all_known


def test_retention_keeps_what_a_session_of_any_shard_needs(world: World) -> None:
    peers = peers_of(world)
    world.peer.received(m.Needs({0: 30}), NONE)
    assert (peers.wanted_lsn(0, None), peers.wanted_lsn(0, 20), peers.wanted_lsn(1, None)) == (30, 20, None)


def test_a_stop_waits_until_the_others_publish_nothing_more(world: World) -> None:
    peers = peers_of(world)
    assert not peers.are_drained
    world.peer.received(m.Drained(), NONE)
    assert peers.are_drained
    world.owner.unacknowledged_bytes = 5
    assert not peers.are_drained


def test_a_lost_shard_is_reported_unless_all_stop(world: World) -> None:
    peers_of(world).lost(1, "died")
    assert world.hand.events == [("shard.lost", {"shard": 1, "why": "died", "times": 1})]
