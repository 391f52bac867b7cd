"""A planned hand-over: no message of QoS 0 is lost by it, and none comes twice."""

import pytest

from rumq.shards.moves.client_hold import ClientHold
from rumq.shards.moves.relayed_clients import RelayedClients
from rumq.shards.replication.hand_over import HandOver
from tests.simulation.shard import Shard
from tests.simulation.world import World

TOPIC = "a"  # its partition belongs to shard 1
LOOKS_MAX = 400


@pytest.fixture
def world() -> World:
    return World()


class Moved:
    """Shard 1, which is handed over. has_asked: its successor may claim"""

    def __init__(self, world: World) -> None:
        self.machine = world.machine
        shard = self.machine.shards[1]
        assert shard is not None
        self.shard: Shard = shard
        self.asked: list[str] = []
        self.failed: list[str] = []
        self.has_all = True
        self.clients = ClientHold(shard.parts, RelayedClients(shard.pump))
        self._hand_over = HandOver(
            "n2", self.machine.monotonic, commit=shard.parts.writing.commit, has_all=lambda peer: self.has_all,
            succeed=self.asked.append, done=self.failed.append, clients=self.clients,
        )  # fmt: skip

    def look(self) -> None:
        self.shard.turn()
        self._hand_over.look(self.machine.monotonic)
        self.shard.turn()
        self.machine.run(30)

    def look_until_asked(self) -> None:
        for _ in range(LOOKS_MAX):
            if self.asked:
                return
            self.look()
        raise AssertionError("the successor is never asked")

    def end(self) -> None:
        """Its successor begins, before any other shard has seen in a view that it leads."""
        self.machine.kill(1)
        self.machine.settle()


def test_what_a_leader_does_not_read_any_more_goes_to_its_successor_at_qos_0(world: World) -> None:
    """The successor of a shard of higher index dials, and may come before the view that says why it leads."""
    subscriber, publisher = world.joined(0), world.joined(0)
    subscriber.subscribe(TOPIC, 0)
    world.machine.settle()
    moved = Moved(world)
    for _ in range(5):
        publisher.publish(TOPIC, 0, retain=False)
        moved.look()
    moved.look_until_asked()
    publisher.publish(TOPIC, 0, retain=False)
    world.machine.run(100)
    moved.end()
    assert world.had(subscriber) == [0, 1, 2, 3, 4, 5]


def test_what_its_disk_has_not_written_is_written_before_the_successor_is_asked(world: World) -> None:
    """A group in flight takes longer than the leader waits for what others publish to end."""
    subscriber, publisher = world.joined(0), world.joined(1)
    subscriber.subscribe(TOPIC, 0)
    world.machine.settle()
    moved = Moved(world)
    writer = moved.shard.workers[0]
    world.machine.frozen[writer] = 1 << 30
    moved.has_all = False  # so that clients are held late
    for _ in range(5):
        publisher.publish(TOPIC, 0, retain=False)
        moved.look()
    for _ in range(100):
        moved.look()
    del world.machine.frozen[writer]
    moved.has_all = True
    moved.look_until_asked()
    log = next(p for p in moved.shard.store.own if p.stream == "main")
    assert log.written_lsn == log.next_lsn == 5


def test_what_a_leader_has_shown_does_not_come_again_when_it_dies_after_it_went_on(world: World) -> None:
    """Nobody took office, so it reads on: from then on others cannot know what it has shown."""
    machine = world.machine
    subscriber, publisher = world.joined(0), world.joined(0)
    subscriber.subscribe(TOPIC, 0)
    machine.settle()
    moved = Moved(world)
    moved.look_until_asked()
    machine.run(100)
    while not moved.failed:
        machine.pass_time(0.5)
        moved.look()
    publisher.publish(TOPIC, 0, retain=False)
    machine.frozen[moved.shard.workers[0]] = 1 << 30
    machine.run(100)
    assert world.had(subscriber) == [0]
    moved.end()
    publisher.publish(TOPIC, 0, retain=False)
    machine.settle()
    assert world.had(subscriber) == [0, 1]
