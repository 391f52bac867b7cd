"""One connection to a follower: messages out, answers in, and its end told once."""

import pytest

from rumq.cluster.replication import messages as m
from rumq.net.frames import encoded
from rumq.shards.replication.feeding.piece_frames import Frames
from rumq.shards.replication.follower_link import ReplicaLink
from tests.shards.replication.world import Wire


class World:
    def __init__(self) -> None:
        self.wire = Wire("n1")
        self.heard: list[m.ReplicaMessage] = []
        self.ends: list[str] = []
        self.drained = 0
        self.changes = True  # what comes does
        self.link = ReplicaLink(
            self.wire, "n1", self._take,
            lambda link, why: self.ends.append(why), self._drained,
        )  # fmt: skip

    def _take(self, link: ReplicaLink, message: m.ReplicaMessage) -> bool:
        self.heard.append(message)
        return self.changes

    def _drained(self, link: ReplicaLink) -> None:
        self.drained += 1

    def feed(self, data: bytes) -> None:
        assert self.link.receive(data, 0, len(data)) == len(data)


def test_answers_are_cut_out_of_what_comes() -> None:
    world = World()
    data = encoded(m.Heard(1)) + encoded(m.Opened(1))
    world.feed(data[:7])
    assert world.heard == []
    world.feed(data[7:])
    assert world.heard == [m.Heard(1), m.Opened(1)]


def test_a_turn_in_which_nothing_changed_is_a_quiet_one() -> None:
    world = World()
    world.feed(encoded(m.Heard(1)))
    assert not world.wire.is_quiet
    world.changes = False
    world.feed(encoded(m.Heard(1)) * 2)
    assert world.wire.is_quiet


def test_room_is_that_of_its_outbox_and_is_asked_for() -> None:
    world = World()
    before = world.link.room
    world.link.say(m.Write(1, "p", "s", 4096), [b"chunk"])
    world.link.write(Frames([b"ab", b"c"], 3))
    assert world.link.room == before - sum(map(len, world.wire.outbox))
    assert b"".join(world.wire.outbox).endswith(b"chunkabc")
    world.link.wants_room()
    assert world.wire.refused
    world.link.drained()
    assert world.drained == 1


@pytest.mark.parametrize("end", ["lost", "give_up", "turned_away"])
def test_an_end_is_told_once_and_nothing_is_said_behind_it(end: str) -> None:
    world = World()
    getattr(world.link, end)("why")
    world.link.lost("again")
    world.link.end()
    assert world.ends == ["why"] and world.wire.is_cut
    world.link.say(m.Heard(1))
    world.link.write(Frames([b"x"], 1))
    world.feed(encoded(m.Heard(1)))
    assert world.wire.outbox == [] and world.heard == []


def test_what_is_no_message_is_an_error_of_the_connection() -> None:
    with pytest.raises(ValueError, match="frame"):
        World().feed(b"GET / HTTP/1.1\r\n")
