"""One other shard: questions survive its death, and watermarks are sent when somebody waits for them."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from rumq.shards.bus import messages as m
from rumq.shards.bus.bus_link import LinkRetries
from rumq.shards.peers.peer import MARK_SECONDS, Parts, Peer, ThisShard
from rumq.shards.peers.peers import Peers
from tests.shards.bus.world import Hand

NONE = memoryview(b"")


class Link:
    def __init__(self) -> None:
        self.said: list[Any] = []
        self.closed = False
        self.ring: Any = None
        self.shared: list[int] = []

    def share(self, identity: int) -> None:
        self.shared.append(identity)

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
        self.feed = feed = SimpleNamespace(
            partition=SimpleNamespace(committed_lsn=4, first_lsn=1), committed_lsn=4, visible_lsn=5,
            mark=lambda committed: 5,
        )  # fmt: skip
        own: Any = [SimpleNamespace(index=0, first_lsn=1, starts=[(1, 0)])]
        self.refusing: dict[int, tuple[bool, str]] = {}
        self.full: set[int] = set()
        nothing: Any = SimpleNamespace(reasons=lambda: self.refusing, full=self.full)
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

    def commit(self, lsn: int) -> None:
        """The one partition of this shard is committed up to there."""
        self.feed.partition.committed_lsn = self.feed.committed_lsn = lsn

    def said_in_a_turn(self) -> list[Any]:
        before = len(self.link.said)
        self.peer.end_turn()
        return self.link.said[before:]


@pytest.fixture
def world() -> World:
    return World()


def test_a_link_begins_with_hello_and_where_our_partitions_stand(world: World) -> None:
    first = world.link
    assert first.said == [m.Hello(0, 77, {0: (1, 5)}, {0: [(1, 0)]})]
    world.peer.received(m.Drained(), NONE)
    world.new_link()
    assert first.closed and not world.link.closed and world.link.said == first.said
    assert not world.peer.is_drained, "of another run"


def test_hello_says_which_ring_there_is_and_the_other_s_is_for_the_link_to_compare(world: World) -> None:
    link: Any = Link()
    link.ring = SimpleNamespace(identity=1 << 63)
    world.peer.linked(link)
    assert link.said == [m.Hello(0, 77, {0: (1, 5)}, {0: [(1, 0)]}, 1 << 63)]
    world.peer.received(m.Hello(1, 88, {}, {}, 99), NONE)
    assert link.shared == [99]


def test_a_shard_of_an_older_version_has_no_ring() -> None:
    """And it takes no notice of ours: it reads as many elements as it knows."""
    old = msgspec.msgpack.encode(["hello", 1, 88, {}, {}])
    assert msgspec.msgpack.decode(old, type=m.Hello).ring == 0
    longer = msgspec.msgpack.encode(["hello", 1, 88, {}, {}, 1 << 63, "of a later version"])
    assert msgspec.msgpack.decode(longer, type=m.Hello).ring == 1 << 63


def test_begin_waits_for_sessions_to_be_restored(world: World) -> None:
    world.hello()
    assert not world.peer.has_begun and "joined" in world.links.calls
    world.interest.has_begun = True
    world.peer.begin()
    assert world.link.said[-1] == m.Begin(["a"], {}, {}, {}) and world.peer.has_begun
    assert "restored" in world.members.calls


def test_begin_is_said_once_over_each_link_and_not_before_the_other_has_said_where_it_stands(world: World) -> None:
    """A home assigns anew what a second one does not name, and the first had been assigned already."""

    def begins() -> int:
        return sum(isinstance(each, m.Begin) for each in world.link.said)

    world.interest.has_begun = True
    world.peer.begin()
    assert not begins() and "restored" in world.members.calls
    world.hello()
    assert begins() == 1
    world.peer.ask(lambda request: m.Want(request, ["a"]), lambda answer, _: None)
    world.new_link()
    world.peer.begin()
    world.peer.ask(lambda request: m.Want(request, ["b"]), lambda answer, _: None)
    assert [type(each) for each in world.link.said] == [m.Hello], "of an earlier link nothing is known here"
    world.hello()
    assert world.link.said[2:] == [m.Want(1, ["a"]), m.Want(2, ["b"])] and begins() == 1


def test_publishers_are_asked_for_before_anything_that_they_have_published_comes(world: World) -> None:
    world.interest.wants_publishers = world.interest.has_begun = True
    world.peer.ask(lambda request: m.ReadFrom(request, 0, 5), lambda answer, _: None)
    assert not any(isinstance(each, m.ReadFrom) for each in world.link.said), "it is not known yet"
    world.hello()
    asked = [type(each) for each in world.link.said[1:]]
    assert asked == [m.WantPublishers, m.WantPublishers, m.Begin, m.ReadFrom]


def test_who_begins_hears_which_partitions_refuse_and_which_are_full(world: World) -> None:
    world.hello()
    world.refusing[0] = (True, "no space")
    world.full.add(0)
    world.peer.received(m.Begin([], {}, {}, {}), NONE)
    assert world.link.said[-2:] == [m.Refusing(0, True, "no space"), m.RetainedFull(0, True)]
    assert "begin" in world.subscriber.calls and "begin" in world.members.calls


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
    world.peer.ask(lambda request: m.RetainedQuestion(request, "#", {}), lambda answer, _: answers.append(answer))
    for more in (True, False, False):
        world.peer.received(m.SearchAnswer(1, {}, [], more=more), NONE)
    assert [answer.more for answer in answers] == [True, False]


def test_answers_go_to_who_asked(world: World) -> None:
    answers: list[tuple[str, Any]] = []
    for name in ("one", "two"):
        world.peer.ask(lambda request: m.Want(request, []), lambda answer, _, name=name: answers.append((name, answer)))
    world.peer.received(m.Wanted(2), NONE)
    world.peer.received(m.Wanted(9), NONE)
    world.peer.received(m.Wanted(1), NONE)
    assert answers == [("two", m.Wanted(2)), ("one", m.Wanted(1))]


def test_all_parts_hear_of_its_end(world: World) -> None:
    world.interest.has_begun = True
    world.hello()
    assert world.peer.has_begun
    world.peer.retention.needs = {0: 4}
    world.peer.tell_needs({4: 9})
    world.peer.lost("died")
    assert not world.peer.has_begun
    for part in (world.owner, world.publisher, world.subscriber, world.members, world.links):
        assert "lost" in part.calls
    assert "home_lost" in world.groups.calls and not world.peer.retention.needs and not world.peer.say(m.Drained())
    world.new_link()
    world.peer.tell_needs({4: 9})
    assert world.link.said[-1] == m.Needs({4: 9}), "its next run has not heard of them"


def test_watermarks_are_sent_at_once_where_a_publisher_waits_and_else_every_50_ms(world: World) -> None:
    world.hello()
    sequence, steps = 0, list[None]()
    world.publisher.incoming = {
        0: SimpleNamespace(step_done=lambda: steps.append(None), committed_sequence=lambda: sequence)
    }
    assert world.said_in_a_turn() == [m.Mark(0, 0, 0, 4, 1)]
    assert world.said_in_a_turn() == [], "nothing has moved"
    world.commit(7)
    world.hand.monotonic += MARK_SECONDS * 0.9
    assert world.said_in_a_turn() == [], "nobody waits for it"
    world.hand.monotonic += MARK_SECONDS * 0.2
    assert world.said_in_a_turn() == [m.Mark(0, 0, 0, 7, 1)]
    sequence = 3
    assert world.said_in_a_turn() == [m.Mark(0, 3, 0, 7, 1)], "at once: a publisher waits"
    world.hand.monotonic += 2 * MARK_SECONDS
    assert world.said_in_a_turn() == [], "also after 50 ms nothing has moved"
    world.commit(9)
    assert world.said_in_a_turn() == []
    world.subscriber.wants_marks = True
    assert world.said_in_a_turn() == [m.Mark(0, 3, 0, 9, 1)], "it asked for every move"
    assert len(steps) == 8, "each turn's records count"


def test_a_watermark_says_how_far_live_records_were_forwarded_only_while_the_reader_is_live(
    world: World,
) -> None:
    world.hello()
    world.publisher.incoming = {0: SimpleNamespace(step_done=lambda: None, committed_sequence=lambda: 0)}
    is_live = False
    world.subscriber.reader = SimpleNamespace(is_live=lambda index: is_live)  # type: ignore[assignment]
    assert world.said_in_a_turn() == [m.Mark(0, 0, 0, 4, 1)]
    is_live = True
    world.hand.monotonic += 2 * MARK_SECONDS
    assert world.said_in_a_turn() == [m.Mark(0, 0, 5, 4, 1)]


def test_a_hand_over_is_told_with_a_watermark_of_each_partition_at_once_and_so_is_its_end(world: World) -> None:
    """Also where nothing has moved since the last one."""
    world.hello()
    world.publisher.incoming = {0: SimpleNamespace(step_done=lambda: None, committed_sequence=lambda: 0)}
    assert world.said_in_a_turn() == [m.Mark(0, 0, 0, 4, 1)]
    for is_last in (True, False):
        world.peer.set_last(is_last)
        assert world.link.said[-1] == m.Mark(0, 0, 0, 4, 1, is_last)
    world.peer.lost("died")
    world.peer.set_last(True)
    assert isinstance(world.link.said[-1], m.Mark)


def test_the_next_link_is_told_every_watermark_anew(world: World) -> None:
    world.hello()
    world.publisher.incoming = {0: SimpleNamespace(step_done=lambda: None, committed_sequence=lambda: 0)}
    world.said_in_a_turn()
    world.peer.lost("died")
    world.new_link()
    world.hand.monotonic += 2 * MARK_SECONDS
    assert world.said_in_a_turn() == [m.Mark(0, 0, 0, 4, 1)]


def test_needs_are_sent_when_they_have_changed(world: World) -> None:
    world.peer.tell_needs({4: 9})
    world.peer.tell_needs({4: 9})
    assert world.link.said.count(m.Needs({4: 9})) == 1
    world.peer.tell_needs({})
    assert world.link.said[-1] == m.Needs({}), "nothing is needed any more"


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
