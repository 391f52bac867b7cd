"""A checkpoint says where readers stand, and which inbound QoS 2 packet ids wait for PUBREL."""

from commitlog.testing.simulated_files import SimulatedFiles
from router import commands as c
from router.readers.subscription import Subscription
from rumq.session.journal import entries as e
from rumq.shards.recovery.checkpoint import CheckpointBuilder, open_packet_ids, unsafe_packet_ids
from tests.commitlog.records import NOW
from tests.shards.recovery.world import Run


def built(run: Run) -> CheckpointBuilder:
    return CheckpointBuilder(run.store.partitions, run.recorder, run.router, run.registry.sessions.get)


def test_it_has_the_watermarks_of_every_partition() -> None:
    run = Run(SimulatedFiles())
    (checkpoint,) = built(run).entries(NOW)
    assert isinstance(checkpoint, e.Checkpoint)
    assert (checkpoint.at_us, checkpoint.next_lsns, checkpoint.live, checkpoint.committed) == (
        NOW,
        [0],
        [0],
        [0],
    )
    assert not checkpoint.behind and not checkpoint.shares


def test_open_packet_ids_are_those_of_the_session_without_unsafe_ones() -> None:
    run = Run(SimulatedFiles())
    session = run.session("pump")
    session.qos2_open = bytearray(8192)
    for packet_id in (1, 9, 300):
        session.qos2_open[packet_id >> 3] |= 1 << (packet_id & 7)
    session.publishers = [4]
    assert unsafe_packet_ids(session, {(0, 4): {9}, (0, 5): {300}}) == {9}
    assert open_packet_ids(session, {9}) == (1).to_bytes(2, "little") + (300).to_bytes(2, "little")


def test_a_shared_subscription_is_in_it_while_a_persistent_session_takes_part() -> None:
    run = Run(SimulatedFiles())
    key = "$share/g/t"
    for client_id, expiry_seconds in (("short", 0), ("long", 3600)):
        session = run.session(client_id, expiry_seconds)
        run.router.step([c.JoinShare(session.subscriber, key, Subscription("t"))])
        group = built(run).shared_group(key)
        assert (group is not None) == bool(expiry_seconds)
