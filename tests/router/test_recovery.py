"""Readers of an earlier run go on as those of this one do: who takes one message at a time gets all of them."""

import pytest

from router import commands as c
from router.readers.subscription import Subscription
from router.recovery import Recovery
from tests.router.world import World


@pytest.mark.parametrize("kind", ["replays", "late"])
def test_what_a_restored_reader_could_not_take_comes_when_it_can(kind: str) -> None:
    world = World(partitions=2, hot=1 << 20)
    topics = ["a", "b", "c", "d"]
    sent = world.publish(topics, qos=1)
    world.commit()
    client = world.client("c")
    restoring = Recovery(world.shard.subscribing)
    reader = restoring.reader(
        client.subscriber, 2, [Subscription("#", 1)], [0, 0], None, committed_only=kind == "replays"
    )
    client.subscriber.add_reader("$log/earliest/#", reader, is_replay=kind == "replays")
    client.credit = 0
    world.attach(client)
    for _ in sent:
        client.credit = 1
        world.do(c.Ready(client.subscriber))
    of = client.got[client.kind_of(reader)]
    assert sorted(place for topic in topics for place in of[topic]) == sorted(sent)
