"""What a node makes of lists that it reads: the newest record stays, an old one is told, and nothing is claimed from
it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from rumq.cluster.control.control_plane import ControlSnapshot
from rumq.cluster.control.leaders import maybe_leader
from rumq.cluster.control.records import ClusterRecord, NodeRecord, ShardRecord, Versioned, View
from rumq.cluster.control.view_tracker import (
    BACK_SECONDS,
    CLOCK_AGE_SECONDS,
    CLOCK_OFF_SECONDS,
    SeenEpochs,
    ViewTracker,
)
from tests.cluster.agent.world import node_record

HERE, OTHER = "n1#00", "n2#00"
CLUSTER = ClusterRecord(id="c1", shards=2, replicas=2, feature_level=1, created_us=0)
NOW_US = 1_800_000_000_000_000


def shard(epoch: int, revision: int, leader: str = HERE) -> Versioned:
    record = ShardRecord(epoch=epoch, leader=leader, claim=f"claim {epoch}", replicas=[HERE, OTHER])
    return Versioned(record, revision)


def read(*shards: Versioned, nodes: list[NodeRecord] | None = None) -> ControlSnapshot:
    return ControlSnapshot(cluster=CLUSTER, nodes=nodes or [], shards=list(shards))


def tracker(data: Path) -> ViewTracker:
    (data / "_cluster").mkdir(exist_ok=True)
    return ViewTracker(HERE, CLUSTER, SeenEpochs(data))


def seen(tracker: ViewTracker) -> View:
    assert tracker.view is not None
    return tracker.view


def records(tracker: ViewTracker) -> list[tuple[int, int]]:
    """Epoch and revision of each shard in the view."""
    return [(each.record.epoch, each.revision) for each in seen(tracker).shards]


def told(events: list[Any], event: str) -> list[Any]:
    return [each for each in events if each["event"] == event]


def test_the_view_has_all_shards_of_the_cluster_also_those_without_a_record(tmp_path: Path) -> None:
    one = tracker(tmp_path)
    assert one.view is None and not one.lost()
    assert one.take(read(nodes=[node_record("n2")]), 0.0, NOW_US)
    assert records(one) == [(0, 0), (0, 0)] and seen(one).is_current
    assert (seen(one).cluster, seen(one).node, seen(one).replicas) == ("c1", HERE, 2)
    assert [node.name for node in seen(one).nodes] == ["n2"]
    assert one.take(read(shard(1, 5), shard(1, 6), shard(1, 7)), 1.0, NOW_US)
    assert records(one) == [(1, 5), (1, 6)], "the cluster has two"


def test_what_changes_all_the_time_is_no_change(tmp_path: Path) -> None:
    one = tracker(tmp_path)
    nodes = [node_record("n2", clock_us=NOW_US)]
    assert one.take(read(shard(1, 5), nodes=nodes), 0.0, NOW_US)
    nodes = [node_record("n2", clock_us=NOW_US + 10_000_000)]
    assert not one.take(read(shard(1, 5), nodes=nodes), 10.0, NOW_US + 10_000_000)
    assert one.lost() and not seen(one).is_current
    assert not one.lost(), "once"
    assert one.take(read(shard(1, 5), nodes=nodes), 20.0, NOW_US) and seen(one).is_current
    assert one.take(read(shard(1, 5)), 30.0, NOW_US), "a node is gone"


def test_an_answer_to_a_change_is_taken_if_it_is_newer(tmp_path: Path) -> None:
    one = tracker(tmp_path)
    assert not one.put(0, shard(1, 5)), "before the first list"
    one.take(read(shard(3, 5), shard(1, 6)), 0.0, NOW_US)
    assert not one.put(0, shard(4, 5)) and not one.put(0, shard(2, 9)) and not one.put(2, shard(9, 9))
    assert records(one) == [(3, 5), (1, 6)]
    assert one.put(1, shard(2, 8, OTHER))
    assert records(one) == [(3, 5), (2, 8)] and seen(one).shards[1].record.leader == OTHER


def test_a_list_that_is_older_than_an_answer_does_not_take_it_back(tmp_path: Path) -> None:
    one = tracker(tmp_path)
    one.take(read(shard(1, 5), shard(1, 6)), 0.0, NOW_US)
    one.put(0, shard(2, 9))
    with structlog.testing.capture_logs() as events:
        assert not one.take(read(shard(1, 5), shard(1, 6)), 0.1, NOW_US)
        assert records(one) == [(2, 9), (1, 6)]
        assert one.is_doubtful and not one.may_claim(0, 1)
        assert one.may_claim(1, 1), "the other shard's record is well"
        assert not one.take(read(shard(2, 9), shard(1, 6)), 0.2, NOW_US)
    assert not one.is_doubtful and one.may_claim(0, 3) and not events


def test_a_record_that_stays_behind_is_told_once_and_only_a_newer_one_takes_its_place(tmp_path: Path) -> None:
    one = tracker(tmp_path)
    one.take(read(shard(7, 50), shard(1, 6)), 0.0, NOW_US)
    old = read(shard(4, 30, OTHER), shard(1, 6))
    with structlog.testing.capture_logs() as events:
        one.take(old, 10.0, NOW_US)
        one.take(old, 10.0 + BACK_SECONDS - 0.01, NOW_US)
        assert seen(one).epochs_back == [] and records(one)[0] == (7, 50) and one.is_doubtful
        for now in (BACK_SECONDS, BACK_SECONDS + 10.0):
            one.take(old, 10.0 + now, NOW_US)
    [event] = told(events, "cluster.epoch_back")
    assert (event["shard"], event["epoch"], event["seen"]) == (0, 4, 7)
    assert seen(one).epochs_back == [0] and not one.is_doubtful
    assert records(one)[0] == (7, 30), "what was seen, with the revision that is there"
    assert seen(one).shards[0].record.leader == HERE
    assert not one.may_claim(0, 6) and one.may_claim(0, 7), "its leader writes its own record there again"
    assert one.may_claim(0, 8)
    one.take(read(shard(8, 31), shard(1, 6)), 40.0, NOW_US)
    assert seen(one).epochs_back == [] and records(one)[0] == (8, 31)
    assert one.may_claim(0, 9) and not one.is_doubtful


def test_revisions_that_alone_go_back_are_believed_after_a_while(tmp_path: Path) -> None:
    """A store that was restored, and nobody was elected since."""
    one = tracker(tmp_path)
    one.take(read(shard(3, 50), shard(1, 6)), 0.0, NOW_US)
    restored = read(shard(3, 20), shard(1, 6))
    with structlog.testing.capture_logs() as events:
        one.take(restored, 10.0, NOW_US)
        assert records(one)[0] == (3, 50) and one.is_doubtful and one.may_claim(0, 4)
        one.take(restored, 10.0 + BACK_SECONDS, NOW_US)
    assert records(one)[0] == (3, 20) and not one.is_doubtful and seen(one).epochs_back == [] and not events


def test_a_restart_does_not_forget_what_was_seen(tmp_path: Path) -> None:
    tracker(tmp_path).take(read(shard(7, 50), shard(1, 6)), 0.0, NOW_US)
    again = tracker(tmp_path)
    again.take(read(shard(4, 30, OTHER), shard(1, 6)), 0.0, NOW_US)
    assert records(again) == [(7, 30), (1, 6)] and not again.may_claim(0, 5) and again.may_claim(0, 8)
    with structlog.testing.capture_logs() as events:
        again.take(read(shard(4, 30, OTHER), shard(1, 6)), BACK_SECONDS, NOW_US)
    assert len(told(events, "cluster.epoch_back")) == 1 and seen(again).epochs_back == [0]


@pytest.mark.parametrize("kept", [b"", b"{", b'{"0":"x"}', b"[7]"])
def test_seen_epochs_that_cannot_be_read_are_none(tmp_path: Path, kept: bytes) -> None:
    (tmp_path / "_cluster").mkdir()
    (tmp_path / "_cluster/epochs.json").write_bytes(kept)
    epochs = SeenEpochs(tmp_path)
    assert epochs.epoch_of(0) == 0
    epochs.note({0: 3, 1: 2})
    epochs.note({0: 2, 1: 4})
    assert (SeenEpochs(tmp_path).epoch_of(0), SeenEpochs(tmp_path).epoch_of(1)) == (3, 4), "never lower"


def test_a_full_disk_does_not_end_the_agent_and_this_run_remembers(tmp_path: Path) -> None:
    epochs = SeenEpochs(tmp_path)
    (tmp_path / "_cluster").touch()  # no directory, so nothing can be written into it
    epochs.note({0: 3})
    assert epochs.epoch_of(0) == 3 and (tmp_path / "_cluster").read_bytes() == b""


@pytest.mark.parametrize(
    ("seconds", "is_off"),
    [
        (0.0, False),
        (CLOCK_OFF_SECONDS, False),
        (CLOCK_OFF_SECONDS + 0.1, True),
        (-CLOCK_OFF_SECONDS - CLOCK_AGE_SECONDS, False),  # the record may be so old
        (-CLOCK_OFF_SECONDS - CLOCK_AGE_SECONDS - 0.1, True),
    ],
)
def test_a_clock_that_is_off_is_told(tmp_path: Path, seconds: float, is_off: bool) -> None:
    one = tracker(tmp_path)
    nodes = [
        node_record("n1", clock_us=0),  # this node itself
        node_record("n2", clock_us=NOW_US + round(seconds * 1e6)),
    ]
    with structlog.testing.capture_logs() as events:
        one.take(read(nodes=nodes), 0.0, NOW_US)
        one.take(read(nodes=nodes), 1000.0, NOW_US + 1_000_000_000)  # the same record, grown old
    found = [(each["node"], each["seconds"]) for each in told(events, "cluster.clock_off")]
    assert found == ([(OTHER, round(seconds, 1))] if is_off else [])


def test_a_clock_is_told_again_only_after_it_was_right(tmp_path: Path) -> None:
    one = tracker(tmp_path)
    with structlog.testing.capture_logs() as events:
        for turn, ahead in enumerate((100, 101, 0, 100)):
            nodes = [node_record("n2", clock_us=NOW_US + (turn + ahead) * 1_000_000)]
            one.take(read(nodes=nodes), float(turn), NOW_US + turn * 1_000_000)
    assert [each["seconds"] for each in told(events, "cluster.clock_off")] == [100.0, 100.0]


def test_a_restored_disk_is_in_every_view(tmp_path: Path) -> None:
    one = tracker(tmp_path)
    one.restored = 9
    one.take(read(shard(1, 5)), 0.0, NOW_US)
    one.put(0, shard(2, 6))
    assert seen(one).restored == 9


def test_a_node_that_an_operator_has_removed_gets_nothing_new(tmp_path: Path) -> None:
    one = tracker(tmp_path)
    nodes = [node_record("n1"), node_record("n2")]
    snapshot = msgspec.structs.replace(read(nodes=nodes), removed=[OTHER], layout={"main": 3})
    assert one.take(snapshot, 0.0, NOW_US)
    assert [node.leaves for node in seen(one).nodes] == [False, True]
    assert seen(one).removed == [OTHER] and seen(one).layout == {"main": 3}
    assert one.take(read(nodes=nodes), 1.0, NOW_US)
    assert [node.leaves for node in seen(one).nodes] == [False, False]


def test_a_layout_that_was_just_noted_is_in_the_view(tmp_path: Path) -> None:
    one = tracker(tmp_path)
    assert not one.laid_out({"main": 1})
    one.take(read(), 0.0, NOW_US)
    assert one.laid_out({"main": 1}) and seen(one).layout == {"main": 1}


def test_a_leader_without_a_lease_keeps_its_address_while_the_record_names_it(tmp_path: Path) -> None:
    """The control plane alone may not see it; the other nodes reach it as before."""
    one, other = tracker(tmp_path), msgspec.structs.replace(node_record("n2"), id=OTHER)
    one.take(read(shard(1, 1, OTHER), shard(1, 2), nodes=[other]), 0.0, NOW_US)
    assert seen(one).unseen == []
    assert one.take(read(shard(1, 1, OTHER), shard(1, 2)), 1.0, NOW_US)
    assert (seen(one).nodes, seen(one).unseen) == ([], [other])
    leader = maybe_leader(seen(one), 0)
    assert leader is not None and (leader.host, leader.port) == (other.host, other.port + 1)
    assert one.put(0, shard(2, 3))
    assert seen(one).unseen == [], "another node leads"
