"""Two shards that are linked are one broker: any client reaches any topic, whichever of them has its partition."""

import pytest

from rumq.shards.bus.remote_partition import RemotePartition
from tests.simulation.shard import Shard
from tests.simulation.world import World

TOPIC = "a"  # its partition belongs to shard 1
HOME_TOPIC = "a/b"  # and this one's to shard 0


@pytest.fixture
def world() -> World:
    return World()


def shards(world: World) -> list[Shard]:
    found = [shard for shard in world.machine.shards if shard is not None]
    assert len(found) == 2
    return found


def test_each_shard_has_a_peer_for_each_other_with_the_partitions_that_it_owns(world: World) -> None:
    for shard in shards(world):
        (peer,) = shard.parts.cluster.peers.others.values()
        assert peer.index == 1 - shard.index and shard.parts.cluster.peers.all_known
        theirs = [p for p in shard.store.partitions if isinstance(p, RemotePartition)]
        assert peer.partitions == theirs and theirs
        assert shard.parts.cluster.peers.is_linked(1 - shard.index)


@pytest.mark.parametrize("reader_at", [0, 1])
@pytest.mark.parametrize("publisher_at", [0, 1])
@pytest.mark.parametrize("topic", [TOPIC, HOME_TOPIC])
def test_a_message_reaches_a_client_of_any_shard_and_is_acknowledged(
    world: World, reader_at: int, publisher_at: int, topic: str
) -> None:
    reader = world.joined(reader_at)
    reader.subscribe(topic, 1)
    world.machine.settle()
    publisher = world.joined(publisher_at)
    publisher.publish(topic, 1, retain=False)
    world.machine.settle()
    (message,) = world.history.messages
    assert world.had(reader) == [message.number] and message.acked is not None


def test_a_shard_that_dies_is_linked_again_and_what_was_on_its_way_arrives(world: World) -> None:
    reader = world.joined(0)
    reader.subscribe(TOPIC, 1)
    world.machine.settle()
    world.machine.kill(1)
    publisher = world.joined(0)
    publisher.publish(TOPIC, 1, retain=False)
    world.machine.start(1)
    world.machine.settle()
    assert len(world.had(reader)) == 1
    assert all(shard.parts.cluster.peers.is_linked(1 - shard.index) for shard in shards(world))
