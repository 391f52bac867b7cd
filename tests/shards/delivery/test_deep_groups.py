"""A shared group that is far behind: what a step gives its member is a piece, however much lies there."""

from __future__ import annotations

from commitlog.testing.simulated_files import SimulatedFiles
from tests.conformance import wire
from tests.conformance.wire import Prop
from tests.faults.shard import Client, Shard
from tests.shards.delivery.world import messages, session_of, subscribed

WINDOW, MESSAGES, BATCH, RANGES_MAX = 10, 3000, 500, 3


def test_what_a_member_does_not_take_stays_one_piece() -> None:
    """Else each acknowledgement would have all that ever came back assigned, refused and returned again."""
    shard = Shard(SimulatedFiles())
    member = subscribed(shard, "m", "$share/g/t", options=1, properties=[(Prop.RECEIVE_MAXIMUM, WINDOW)])
    publisher = Client(shard, "p", 5)
    # A chunk of many messages each, as batches of doors are.
    for first in range(0, MESSAGES, BATCH):
        publisher.say(b"".join(wire.publish("t", b"x" * 1000, 1, first + each + 1) for each in range(BATCH)))
    (share,) = session_of(shard, "m").subscriber.shares.values()
    got = 0
    while got < MESSAGES:
        some = messages(member)
        assert some, f"it stopped behind {got}"
        got += len(some)
        for each in some:
            assert each.packet_id is not None
            member.say(wire.ack(wire.Kind.PUBACK, each.packet_id))
        assert len(share.returned) <= RANGES_MAX
    assert got == MESSAGES
    shard.end()
