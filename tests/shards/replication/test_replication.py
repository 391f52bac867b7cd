"""A leader and its followers: what is committed, what is copied, and what survives which fault."""

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
from msgspec import structs

from router.commands import Committed
from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication import messages as m
from rumq.net.frames import MessageReader, encoded
from rumq.shards.replication.feeding.feeder import BLOCK_BYTES, UNSYNCED_BYTES_MAX
from tests.commitlog.records import index
from tests.shards.replication.world import Follower, Wire, World, guard, segments


def trim(world: World) -> None:
    """Retention, on the thread of the writer."""
    index(world.main)
    removal = world.main.take_retention(None)
    assert removal is not None
    removal.run()
    world.main.removed(removal)


def test_a_term_opens_once_a_majority_has_the_log() -> None:
    world = World("n1", "n2")
    world.followers["n1"].is_reachable = world.followers["n2"].is_reachable = False
    world.begin()
    assert not world.replication.is_open
    world.followers["n1"].is_reachable = True
    world.after(0.1)
    assert world.replication.is_open and len(world.told("cluster.term_open")) == 1
    assert world.followers["n1"].state.opened == 1


def test_what_is_written_is_copied_byte_for_byte_and_committed() -> None:
    world = World("n1", "n2").begin()
    for size in (1, 3, 200):
        world.publish(size, 100)
        world.publish(1, index=1)
        world.settle()
    assert world.main.committed_lsn == world.main.next_lsn == 204
    assert world.is_copied("n1") and world.is_copied("n2")


def test_an_idle_leader_sends_ten_beats_a_second_and_their_answers_need_no_stages() -> None:
    world = World("n1", "n2").begin()
    world.publish()
    world.settle()
    for _ in range(3):  # what is committed is told, and known
        world.after(0.1)
    for follower in world.followers.values():
        follower.heard.clear()
    for _ in range(10):
        for wire, _ in world.wires.values():
            wire.is_quiet = False
        world.after(0.1)
        assert all(wire.is_quiet for wire, _ in world.wires.values())
    heard = [[structs.replace(beat, count=0) for beat in each.heard] for each in world.followers.values()]
    assert heard == [[m.Beat(1, {})] * 10] * 2


def test_the_first_answer_of_a_follower_that_opens_the_term_is_not_a_quiet_one() -> None:
    world = World("n1", "n2")
    world.followers["n2"].is_reachable = False
    world.begin()
    assert world.replication.is_open and not world.wires["n1"][0].is_quiet


def test_nothing_is_committed_by_one_copy() -> None:
    world = World("n1", "n2").begin()
    world.publish()
    world.settle(but=("n1", "n2"))
    assert (world.main.durable_lsn, world.main.committed_lsn) == (1, 0)
    world.settle(but=("n2",))
    assert world.main.committed_lsn == 1


def test_nothing_is_committed_before_the_leader_has_synced_it_itself() -> None:
    """Two copies are a majority, but a leader that fails to write them writes them again elsewhere."""
    world = World("n1", "n2").begin()
    world.publish()
    world.settle(writes=False)
    assert world.followers["n1"].copies.ends()["main/g1/p0"] == 0  # the segment is opened by the group itself
    world.settle()
    world.publish()
    world.settle(writes=False)
    assert world.followers["n1"].copies.ends()["main/g1/p0"] == 2, "sent while the leader's disk writes"
    assert world.main.committed_lsn == 1
    world.settle()
    assert world.main.committed_lsn == 2


def test_a_stream_of_disk_is_committed_by_its_own_disk_and_copied_all_the_same() -> None:
    world = World("n1", "n2").begin()
    world.publish(3, index=1)
    world.settle(but=("n1", "n2"))
    assert world.store.own[1].committed_lsn == 3
    world.settle()
    assert world.is_copied("n1")


def test_an_acknowledgement_and_the_router_wait_for_the_majority() -> None:
    world = World("n1", "n2").begin()
    world.settle()
    world.commands.take()
    world.publish()
    world.settle(but=("n1", "n2"))
    assert [c for c in world.commands.take() if isinstance(c, Committed)] == []
    world.settle()
    assert [(c.partition, c.lsn) for c in world.commands.take() if isinstance(c, Committed)] == [(0, 1)]


# Catching up


def test_a_follower_that_was_away_is_fed_from_disk_and_goes_live() -> None:
    world = World("n1", "n2", segment_bytes_max=1 << 16).begin()
    world.hang_up("n2")
    world.followers["n2"].is_reachable = False
    for _ in range(30):
        world.publish(5, 2_000)
        world.settle()
    world.followers["n2"].is_reachable = True
    world.after(2.0)
    assert world.is_copied("n2") and len(segments(world.files)) > 4
    writes = len(world.followers["n2"].kinds(m.Inventory))
    world.publish()
    world.settle()
    assert world.is_copied("n2") and len(world.followers["n2"].kinds(m.Inventory)) == writes


def test_no_more_is_sent_from_disk_than_a_follower_may_lack() -> None:
    world = World("n1", "n2", segment_bytes_max=64 << 20).begin()
    world.hang_up("n2")
    world.followers["n2"].is_reachable = False
    for _ in range(30):
        world.publish(50, 12_000)
        world.settle()
    slow = world.followers["n2"]
    slow.is_reachable = True
    slow.syncs = False
    world.after(2.0)
    feeder = world.replication._copies.by_key["main/g1/p0"].feeders["n2"]
    assert UNSYNCED_BYTES_MAX <= feeder._unsynced_bytes <= UNSYNCED_BYTES_MAX + 2 * BLOCK_BYTES
    assert not feeder.is_live
    slow.syncs = True
    world.settle()
    assert feeder.is_live and world.is_copied("n2") and not feeder._unsynced_bytes


def test_a_follower_whose_outbox_is_full_is_fed_from_disk_later() -> None:
    world = World("n1", "n2", segment_bytes_max=64 << 20).begin()
    for _ in range(20):
        world.publish(50, 14_000)
        world.settle(but=("n2",))
    wire, _ = world.wires["n2"]
    assert -(2 << 20) < wire.room < 1 << 20, "its outbox is bounded"
    assert world.main.committed_lsn == 1000, "the others do not wait for it"
    world.settle()
    assert world.is_copied("n2")
    assert world.replication._copies.by_key["main/g1/p0"].feeders["n2"].is_live


def test_who_catches_up_while_much_is_written_goes_live_all_the_same() -> None:
    """It need not meet the very end of the log: what was written last is at hand."""
    world = World("n1", "n2", segment_bytes_max=64 << 20).begin()
    world.hang_up("n2")
    world.followers["n2"].is_reachable = False
    for _ in range(10):
        world.publish(25, 12_000)
        world.settle()
    world.followers["n2"].is_reachable = True
    world.time += 2.0
    world.clock.tick()
    world.timers.run_due(guard)
    for _ in range(8):
        # A group ends between any two reads.
        world.publish(1, 1_000)
        world.turn()
        while world.writer.jobs:
            world.writer.work()
        for peer in ("n1", "n2"):
            world.carry(peer)
        if world.reader.jobs:
            world.reader.work()
    assert world.replication._copies.by_key["main/g1/p0"].feeders["n2"].is_live
    world.settle()
    assert world.is_copied("n2")


def test_one_who_begins_behind_what_retention_removed_gets_the_names_of_topics() -> None:
    world = World("n1", "n2", segment_bytes_max=1 << 16, retention_bytes_max=1 << 16).begin()
    world.hang_up("n2")
    world.followers["n2"].is_reachable = False
    for _ in range(20):
        world.publish(5, 3_000)
        world.settle()
    trim(world)
    assert world.main.first_lsn > 0
    world.followers["n2"].is_reachable = True
    world.after(2.0)
    assert world.is_copied("n2")
    assert world.followers["n2"].kinds(m.Names)


def test_what_retention_removes_is_removed_from_the_copies() -> None:
    world = World("n1", "n2", segment_bytes_max=1 << 16, retention_bytes_max=1 << 16).begin()
    for _ in range(20):
        world.publish(5, 3_000)
        world.settle()
    world.after(0.2)  # a beat tells what is committed
    for follower in world.followers.values():
        follower.copies.work()
        follower.copies._indexer.shutdown()
        follower.copies._indexer = ThreadPoolExecutor(1)
    trim(world)
    world.settle()
    assert world.followers["n1"].kinds(m.TrimCopy)


# Faults of the leader's disk


def test_what_followers_had_of_a_group_that_failed_here_does_not_count() -> None:
    """They acknowledge chunks of a segment that the leader has given up; those are cut off, and sent anew."""
    world = World("n1", "n2").begin()
    world.publish()
    world.settle()
    world.publish()
    world.files.fail = {len(world.files.calls) + 1: errno.EIO}  # the sync
    world.settle(writes=False)
    for follower in world.followers.values():
        assert follower.copies.ends()["main/g1/p0"] == 2
    world.settle(but=("n1", "n2"))
    assert (world.main.durable_lsn, world.main.committed_lsn) == (2, 1)
    assert not any(world.replication.core._followers[peer].synced.get("main/g1/p0") for peer in ("n1", "n2"))
    world.settle()
    assert world.main.committed_lsn == 2 and not world.ended
    assert world.is_copied("n1") and world.is_copied("n2")


def test_what_is_acknowledged_before_a_comparison_does_not_count() -> None:
    world = World("n1", "n2").begin()
    world.publish()
    world.settle()
    for follower in world.followers.values():
        follower.syncs = False
    world.publish()
    world.files.fail = {len(world.files.calls) + 1: errno.EIO}
    world.settle(writes=False)
    for follower in world.followers.values():
        follower.syncs = True
    world.settle(but=("n1", "n2"))
    assert world.main.durable_lsn == 2
    for peer in ("n1", "n2"):
        world.carry(peer)  # an inventory there; an acknowledgement and the segments back
        assert world.followers[peer].copies.ends()["main/g1/p0"] == 2
    assert world.main.committed_lsn == 1
    world.settle()
    assert world.main.committed_lsn == 2 and world.is_copied("n1")


def test_a_copy_linked_anew_counts_only_once_it_has_been_compared() -> None:
    world = World("n1", "n2").begin()
    world.publish()
    world.settle()
    world.publish()
    world.settle(writes=False)
    world.hang_up("n1")
    world.hang_up("n2")
    world.files.fail = {len(world.files.calls) + 1: errno.EIO}
    while world.writer.jobs:
        world.writer.work()
    world.after(0.1, but=("n1", "n2"))
    for peer in ("n1", "n2"):
        world.carry(peer)  # greeting and Promise there, Promised back
    assert world.main.durable_lsn == 2 and world.main.committed_lsn == 1
    world.settle()
    assert world.main.committed_lsn == 2 and world.is_copied("n1")


# The end of a term


def test_a_leader_that_is_told_of_a_higher_epoch_ends() -> None:
    world = World("n1", "n2").begin()
    world.followers["n1"].core.received(77, m.Promise(2), memoryview(b""), 0.0)
    world.publish()
    world.settle()
    assert world.ended == 1
    assert world.told("cluster.deposed")[0]["epoch"] == 1


def test_a_view_with_another_leader_ends_the_term() -> None:
    world = World("n1", "n2").begin()
    world.replication.seen(world.view)
    assert not world.ended
    record = ShardRecord(epoch=2, leader="n1", claim="x", replicas=["n0", "n1", "n2"])
    world.replication.seen(msgspec.structs.replace(world.view, shards=[Versioned(record, 2)]))
    assert world.ended == 1


def asked(world: World, *messages: m.ReplicaMessage) -> list[m.ReplicaMessage]:
    """What another replica gets that dials the leader and says this."""
    wire = Wire("n1")
    link = world.replication.askers.link_over(wire, "n1")
    data = b"".join(encoded(message) for message in messages)
    link.receive(data, 0, len(data))
    reader: MessageReader[m.ReplicaMessage] = MessageReader(m.ReplicaMessage)
    return [message for message, _ in reader.feed(b"".join(wire.outbox))]


def test_a_leader_answers_that_it_hears_the_leader() -> None:
    world = World("n1", "n2", epoch=3).begin()
    world.publish(4)
    world.settle()
    assert asked(world, m.Poll()) == [m.Polled(True, 3, 3, 4)]


def test_a_leader_gives_way_to_a_higher_epoch_and_to_no_other() -> None:
    world = World("n1", "n2", epoch=3).begin()
    assert asked(world, m.Promise(3)) == [m.Outdated(3)]
    assert asked(world, m.FetchCopy(2, "main/g1/p0", [])) == [m.Outdated(3)]
    assert not world.ended
    asked(world, m.Promise(4))
    assert world.ended == 1


def test_the_next_leader_goes_on_where_the_last_one_ended() -> None:
    world = World("n1", "n2").begin()
    world.publish(7)
    world.settle()
    followers = world.followers
    for peer in list(followers):
        world.hang_up(peer)
    again = World(files=world.files.after_kill(), followers=followers, epoch=2).begin()
    assert again.replication.is_open and again.main.committed_lsn == 7
    again.publish(2)
    again.settle()
    assert again.main.committed_lsn == 9 and again.is_copied("n1")
    assert followers["n1"].state.promised == followers["n1"].state.opened == 2


# Handing over


def test_a_hand_over_waits_until_the_successor_has_everything() -> None:
    world = World("n1", "n2").begin()
    failed: list[str] = []
    world.publish()
    world.replication.succession.hand_over("n1", failed.append)
    assert world.replication.uncommitted_bytes(0) > 1 << 40, "publishers are paused"
    world.after(0.2, but=("n1",))
    assert not [each for each in world.sent("n1") if isinstance(each, m.Succeed)]
    world.after(0.2)
    world.after(0.02)
    assert world.followers["n1"].kinds(m.Succeed) == [m.Succeed(1)] and not failed


def test_a_leader_goes_on_if_nobody_succeeds() -> None:
    world = World("n1", "n2").begin()
    failed: list[str] = []
    world.replication.succession.hand_over("n1", failed.append)
    world.after(0.2)
    assert world.commit.is_frozen
    world.after(3.0)
    assert failed == ["it did not take office in time"] and not world.ended
    assert not world.commit.is_frozen
    assert world.replication.uncommitted_bytes(0) == 0
    world.replication.succession.hand_over("n9", failed.append)
    assert failed[1:] == ["n9 is no follower of shard 0"]


# Quorum


def test_a_lost_quorum_is_told_and_holds_publishers_back() -> None:
    world = World("n1", "n2").begin()
    for peer in ("n1", "n2"):
        world.hang_up(peer)
        world.followers[peer].is_reachable = False
    world.publish(5, 10_000)
    for _ in range(30):
        world.after(0.1)
    assert world.told("cluster.quorum_lost")[0]["unheard"] == ["n1", "n2"]
    assert world.replication.uncommitted_bytes(0) >= 50_000 and world.main.committed_lsn == 0
    world.followers["n1"].is_reachable = True
    for _ in range(30):
        world.after(0.1)
    assert world.told("cluster.quorum_back") and world.main.committed_lsn == 5
    assert world.replication.uncommitted_bytes(0) == 0


def test_a_follower_that_answers_no_beat_is_dialled_again() -> None:
    world = World("n1", "n2").begin()
    before = world.followers["n2"].link
    for _ in range(60):
        world.after(0.1, but=("n2",))
    assert world.followers["n2"].link > before
    assert any(told["node"] == "n2" and "silent" in told["why"] for told in world.told("cluster.follower_lost"))


# Members


def test_a_leader_without_followers_commits_what_it_has_synced() -> None:
    world = World().begin()
    assert world.replication.is_open
    world.publish(3)
    world.settle(writes=False)
    assert world.main.committed_lsn == 0
    world.settle()
    assert world.main.committed_lsn == 3


def test_a_new_member_gets_the_log_before_it_counts() -> None:
    world = World("n1", "n2").begin()
    world.publish(3)
    world.settle()
    world.followers["n3"] = Follower("n3")
    nodes = [*world.view.nodes, msgspec.structs.replace(world.view.nodes[0], id="n3", host="n3")]
    record = ShardRecord(epoch=2, leader="n0", claim="x", replicas=["n0", "n1", "n3"], old_replicas=["n0", "n1", "n2"])
    world.replication.seen(msgspec.structs.replace(world.view, nodes=nodes, shards=[Versioned(record, 2)]))
    assert not world.ended, "its own claim"
    world.replication.change(2, record)
    world.publish()
    world.after(0.2, but=("n3", "n2"))
    assert world.main.committed_lsn == 4, "n1 is of both majorities"
    world.after(0.2)
    assert world.is_copied("n3") and world.followers["n3"].state.opened == 2
    world.replication.settle(msgspec.structs.replace(record, old_replicas=None))
    assert world.wires["n2"][0].is_cut
    world.publish()
    world.settle(but=("n2",))
    assert world.main.committed_lsn == 5 and world.replication.figures()["behind"] == {"n1": 0, "n3": 0}


def test_while_members_change_nothing_is_sent_before_the_copy_is_compared() -> None:
    """What came behind the answer would be sent twice, and a segment that begins twice is none."""
    world = World("n1", "n2", segment_bytes_max=4096).begin()
    world.publish(3)
    world.settle()
    record = ShardRecord(epoch=2, leader="n0", claim="x", replicas=["n0", "n1"], old_replicas=["n0", "n1", "n2"])
    world.replication.change(2, record)
    for _ in range(4):
        world.publish(9, 400)  # more segments than one
        world.settle(but=("n1", "n2"))
    kinds = [type(each).__name__ for each in world.sent("n1")]
    assert "Promise" in kinds and not {"Open", "Write"} & set(kinds)
    world.settle()
    assert world.is_copied("n1") and not world.ended


def test_a_leader_with_fewer_members_than_the_cluster_asks_for_waits_for_a_second_copy() -> None:
    """A broker that was alone becomes the first node: the others only learn. One copy acknowledges nothing."""
    world = World("n1", "n2")
    record = msgspec.structs.replace(world.replication.core.record, replicas=["n0"], learners=["n1", "n2"])
    world.replication.core.record = record
    world.begin()
    assert world.replication.is_open
    world.publish(3)
    world.settle(but=("n1", "n2"))
    assert world.main.committed_lsn == 0
    world.settle(but=("n2",))
    assert world.main.committed_lsn == 3


def test_what_a_thread_writes_wakes_the_loop() -> None:
    world = World("n1", "n2").begin()
    world.publish(900, 5_000)  # too much for the loop to lay out
    world.turn()
    assert world.writer.jobs
    thread = threading.Thread(target=world.writer.jobs[0][0])
    thread.start()
    thread.join()
    os.set_blocking(world.replication._copies._fd, False)
    assert os.eventfd_read(world.replication._copies._fd) == 1
    os.eventfd_write(world.replication._copies._fd, 1)
    world.replication._copies._awake()
    assert any(isinstance(message, m.Write) for message in world.sent("n1"))
