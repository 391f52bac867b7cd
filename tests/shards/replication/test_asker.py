"""Other replicas that ask a leader: it says that it leads, gives way to higher epochs, and to nothing else."""

import pytest

from rumq.cluster.replication import messages as m
from rumq.net.frames import PREFIX, MessageReader, encoded
from rumq.shards.replication.asker import NODE_LINKS_MAX, QUESTION_BYTES_MAX, Askers
from tests.shards.replication.world import Wire


class World:
    def __init__(self) -> None:
        self.deposed: list[str] = []
        self.askers = Askers(lambda: (4, "mine"), lambda: 70, self.deposed.append)
        self.wire = Wire("n2")
        self.link = self.askers.link_over(self.wire, "n2")

    def ask(self, message: m.ReplicaMessage) -> list[m.ReplicaMessage]:
        self.ask_raw(encoded(message))
        reader: MessageReader[m.ReplicaMessage] = MessageReader(m.ReplicaMessage)
        return [answer for answer, _ in reader.feed(b"".join(self.wire.outbox))]

    def ask_raw(self, data: bytes) -> None:
        self.link.receive(data, 0, len(data))


def test_a_leader_hears_itself() -> None:
    assert World().ask(m.Poll()) == [m.Polled(True, 4, 4, 70)]


def test_a_higher_epoch_ends_the_term() -> None:
    world = World()
    assert world.ask(m.Promise(5)) == [] and world.deposed == ["n2 has won epoch 5, this term has 4"]


@pytest.mark.parametrize("message", [m.Promise(4), m.Promise(3), m.Heard(9), m.FetchCopy(4, "p", [])])
def test_everything_else_is_outdated(message: m.ReplicaMessage) -> None:
    world = World()
    assert world.ask(message) == [m.Outdated(4, "mine")] and world.wire.is_cut and world.deposed == []


def test_links_end_with_the_leader() -> None:
    world = World()
    world.askers.close()
    assert world.wire.is_cut and world.link.closed


def test_a_question_has_a_bounded_size() -> None:
    """The last line of defence: whoever asks is a node, and polls and promises are small."""
    world = World()
    with pytest.raises(ValueError, match="a frame of"):
        world.ask_raw(PREFIX.pack(QUESTION_BYTES_MAX + 1, 16))
    assert world.deposed == []


def test_of_a_nodes_many_links_the_oldest_makes_room() -> None:
    world = World()
    more = [world.askers.link_over(Wire("n2"), "n2") for _ in range(NODE_LINKS_MAX)]
    other = world.askers.link_over(Wire("n3"), "n3")
    assert world.wire.is_cut and world.link.closed
    assert not any(each.closed for each in (*more, other))
