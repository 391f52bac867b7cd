"""A checkpoint says where readers stand, and which inbound QoS 2 packet ids wait for PUBREL."""

from random import Random

import pytest

from commitlog import StreamSpec
from commitlog.testing.simulated_files import SimulatedFiles
from router import commands as c
from router.readers.subscription import Subscription
from router.recovery import Recovery
from router.shard import ShardRouter
from rumq.session.journal import entries as e
from rumq.shards.bus.remote_partition import RemotePartition
from rumq.shards.recovery.checkpoint import CheckpointBuilder, open_packet_ids, unsafe_packet_ids
from tests.commitlog.records import NOW, everything
from tests.conformance import wire
from tests.faults.shard import Client, Shard
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
        run.router.step([c.JoinShare(session.own_subscriber(), key, Subscription("t"))])
        group = built(run).shared_group(key)
        assert (group is not None) == bool(expiry_seconds)


def test_a_group_that_was_restored_is_in_it_before_any_shard_has_said_that_it_has_members() -> None:
    """A snapshot then is all that the next run finds: it must not be over because its home died twice."""
    run = Run(SimulatedFiles())
    Recovery(run.router.subscribing).share("$share/g/t", "t", [0], [(0, 0, 2)], list)
    assert built(run).shared_group("$share/g/t") is None, "nobody lasting takes part"
    run.router.sharing.hold()
    (checkpoint,) = built(run).entries(NOW, whole=True)
    assert isinstance(checkpoint, e.Checkpoint)
    assert checkpoint.shares == {"$share/g/t": e.SharedCheckpoint([0], [(0, 0, 2)])}


def test_it_names_the_run_of_each_owner_that_positions_are_of() -> None:
    run = Run(SimulatedFiles())
    elsewhere = RemotePartition(StreamSpec("main", ("#",), 2), 0, 0, 1, owner=1)
    elsewhere.run.known = (77, 3)
    partitions = [elsewhere, *run.store.partitions]
    built = CheckpointBuilder(partitions, run.recorder, ShardRouter(partitions), run.registry.sessions.get)
    (checkpoint,) = built.entries(NOW)
    assert isinstance(checkpoint, e.Checkpoint) and checkpoint.runs == [(77, 3), (0, 0)]


class Groups:
    """A shard with lasting members of shared subscriptions who are away and come back, for what is written of groups.

    waiting: of each group the payloads that no member was sent; had: what they acknowledged; settled: before the last
    checkpoint"""

    def __init__(self, count: int, seed: int = 0) -> None:
        self.files = SimulatedFiles()
        self.seed = seed
        self.shard = Shard(self.files, seed=seed)
        self.members: dict[int, Client] = {}
        self.names = range(count)
        self.waiting: dict[int, set[bytes]] = {name: set() for name in self.names}
        self.had: set[bytes] = set()
        self.settled: set[bytes] = set()
        self.number = 0
        for name in self.names:
            self.come(name)
            self.members[name].say(wire.subscribe(1, [(f"$share/g{name}/t/{name}", 1)]))
            self.hear(name)
        self.publisher = Client(self.shard, "p", 5)

    def come(self, name: int) -> None:
        self.members[name] = Client(
            self.shard, f"c{name}", 5, clean=False, properties=[(wire.Prop.SESSION_EXPIRY, 3600)]
        )
        self.hear(name)

    def leave(self, name: int) -> None:
        self.members.pop(name).say(wire.disconnect())

    def hear(self, name: int) -> None:
        """It acknowledges what it was sent."""
        member = self.members[name]
        while packets := member.take():
            for packet in packets:
                if packet.kind == wire.Kind.PUBLISH:
                    self.waiting[name].discard(packet.payload)
                    assert packet.payload not in self.settled, f"{packet.payload!r} comes again to {name}"
                    self.had.add(packet.payload)
                    member.say(wire.ack(wire.Kind.PUBACK, packet.packet_id))

    def publish(self, name: int) -> None:
        self.number += 1
        payload = b"%d" % self.number
        self.publisher.say(wire.publish(f"t/{name}", payload, 1, 1))
        self.publisher.take()
        if name in self.waiting:
            self.waiting[name].add(payload)
            if name in self.members:
                self.hear(name)

    def checkpoint(self) -> None:
        self.shard.after(1.5)

    def snapshot(self) -> None:
        self.shard.parts.operation.restorer.journal.write_snapshot(self.shard.now_us)
        self.shard.settle()

    def kill(self) -> None:
        self.shard.end()
        self.seed += 1
        self.files = self.files.after_kill()
        self.shard = Shard(self.files, seed=self.seed, now_us=self.shard.now_us)
        self.members.clear()
        self.publisher = Client(self.shard, "p", 5)

    def checkpoints(self) -> list[e.Checkpoint]:
        """Of the whole journal."""
        assert self.shard.store.internal is not None
        records = [e.decode_entries(seen.payload) for seen in everything(self.shard.store.internal)[0]]
        return [entry for record in records for entry in record if isinstance(entry, e.Checkpoint)]


def test_a_checkpoint_names_the_groups_that_had_a_message_and_no_others() -> None:
    world = Groups(5)
    world.checkpoint()
    world.leave(3)
    world.publish(3)
    world.checkpoint()
    before = len(world.checkpoints())
    world.publish(1)
    world.checkpoint()
    for _ in range(3):
        world.publish(9)  # nobody wants it
        world.checkpoint()
    world.publish(3)  # it waits for its member since before
    world.checkpoint()
    found = [set(each.shares) for each in world.checkpoints()[before:]]
    assert found == [{"$share/g1/t/1"}, set(), set(), set(), set()]
    before = len(world.checkpoints())
    world.snapshot()
    first = world.checkpoints()[before]
    assert set(first.shares) == {f"$share/g{name}/t/{name}" for name in world.names}, "what is older may be removed"
    world.shard.end()


def test_a_group_that_was_left_out_goes_on_where_the_log_was_at_the_last_checkpoint() -> None:
    """It is not behind by what nobody of it wanted, which it would have to read again."""
    world = Groups(3)
    world.leave(2)
    world.publish(2)
    world.checkpoint()
    for _ in range(10):
        world.publish(9)
    world.checkpoint()
    world.kill()
    router = world.shard.parts.router
    behind = [
        [feed.mark(True) - at for feed, at in zip(router.feeds, share.reader.cursors, strict=True)]
        for _, share in sorted(router.sharing.shares.items())
    ]
    assert behind == [[0, 0], [0, 0], [0, 11]], "the last one has not had the first of these 11"
    world.shard.end()


def test_what_a_member_acknowledged_whose_session_ends_with_the_broker_does_not_come_again() -> None:
    world = Groups(1)
    world.leave(0)
    member = Client(world.shard, "short", 5)
    member.say(wire.subscribe(1, [("$share/g0/t/0", 1)]))
    member.take()
    world.publish(0)
    (sent,) = member.take()
    world.checkpoint()
    member.say(wire.ack(wire.Kind.PUBACK, sent.packet_id))
    world.publish(9)  # else there is no checkpoint
    world.checkpoint()
    world.kill()
    world.settled.add(sent.payload)
    world.come(0)
    world.shard.end()


@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_between_checkpoints_and_kills_no_group_loses_a_message(seed: int) -> None:
    """And what was acknowledged before a checkpoint does not come again after it."""
    random = Random(seed)
    world = Groups(4, seed * 1000)
    for _ in range(60):
        name = random.choice(world.names)
        what = random.choice(["publish", "publish", "nobody's", "checkpoint", "away", "snapshot", "kill"])
        if what == "publish":
            world.publish(name)
        elif what == "nobody's":
            world.publish(9)
        elif what == "checkpoint":
            world.checkpoint()
            world.settled |= world.had
        elif what == "away" and name in world.members:
            world.leave(name)
        elif what == "away":
            world.come(name)
        elif what == "snapshot" and random.random() < 0.3:
            world.snapshot()
        elif what == "kill" and random.random() < 0.4:
            world.kill()
    for name in world.names:
        if name not in world.members:
            world.come(name)
    assert not any(world.waiting.values()), world.waiting
    world.shard.end()
