"""The partitions of a shard on a node that does not lead it, on a simulated disk."""

from array import array
from concurrent.futures import Future

import pytest

from commitlog import LogError
from commitlog.index.dictionary import DictionarySnapshot, snapshot_pieces
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.node.log_copies import NodeLogCopies
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.ports import CutRefused
from tests.cluster.node.world import COPIES, KEY, filled, frames, log

NAMES = b"".join(snapshot_pieces(DictionarySnapshot(30, [b"old"], array("Q", [30]), {}, 1)))


def blank() -> NodeLogCopies:
    return NodeLogCopies(SimulatedFiles(), "data", COPIES)


def test_a_blank_copy_becomes_the_leaders_log() -> None:
    source, copies = log(3), blank()
    assert not copies.has_log and not copies.doubt and copies.ends() == {KEY: 0}
    filled(copies, source)
    assert copies.has_log and copies.ends() == {KEY: 30}
    [ours], [theirs] = copies.inventory(KEY), source.inventory(KEY)
    assert (ours.name, ours.end_lsn, ours.stop) == (theirs.name, theirs.end_lsn, theirs.stop)


def test_only_what_was_touched_is_told_when_it_is_synced() -> None:
    copies = filled(blank(), log(1))
    assert copies.sync() == []
    more = log(1)
    copies = blank()
    for message, raw in frames(more):
        copies.apply(message, memoryview(raw))  # type: ignore[arg-type]
    [(key, next_lsn, name, stop)] = copies.sync()
    [segment] = copies.inventory(KEY)
    assert (key, next_lsn, name, stop) == (KEY, 10, segment.name, segment.stop)


def test_who_asks_for_the_ends_takes_no_acknowledgement_away() -> None:
    copies = blank()
    for message, raw in frames(log(1)):
        copies.apply(message, memoryview(raw))  # type: ignore[arg-type]
    assert copies.ends() == {KEY: 10}  # a poll, before the group is acknowledged
    assert [told[:2] for told in copies.sync()] == [(KEY, 10)]


def test_a_claimant_gets_what_it_lacks_and_no_more() -> None:
    source = log(3)
    copies = filled(blank(), log(2))  # the same names and bytes, up to there
    served = [message for message, _ in source.serve(1, KEY, copies.inventory(KEY))]
    assert [type(each) for each in served] == [m.Cut, m.Write, m.Fetched]
    assert served[1].position == copies.inventory(KEY)[0].stop  # type: ignore[union-attr]


def test_what_is_committed_is_never_cut() -> None:
    copies = filled(blank(), log(2))
    copies.note_committed(KEY, 20)
    [segment] = copies.inventory(KEY)
    with pytest.raises(CutRefused, match="everything below 20 was committed"):
        copies.apply(m.Cut(1, KEY, [segment.name], "", 0, 0, 0), memoryview(b""))
    assert copies.ends() == {KEY: 20}


def test_work_prepares_room_and_indexes_when_nobody_waits() -> None:
    copies = filled(blank(), log(1))
    for _ in range(3):
        copies.work()
    assert copies.ends() == {KEY: 10}
    copies.close()


def test_a_partition_of_the_leader_that_is_not_here_is_told_with_the_reason() -> None:
    """Settings that differ between nodes."""
    with pytest.raises(LogError, match=r"the leader has a partition plant/g1/p0, .* the same \[\[stream\]\] settings"):
        blank().inventory("plant/g1/p0")
    with pytest.raises(LogError, match="has a partition"):
        blank().apply(m.TrimCopy(1, "plant/g1/p0", 4), memoryview(b""))


def beginning_at(lsn: int, epoch: int = 1) -> NodeLogCopies:
    """Retention has removed everything below."""
    copies = blank()
    copies.apply(m.Cut(epoch, KEY, [], "", 0, 0, lsn), memoryview(b""))
    copies.apply(m.Names(epoch, KEY), memoryview(NAMES))
    return copies


def test_a_copy_that_begins_anew_still_tells_what_it_knows_to_be_committed() -> None:
    """Retention had removed 30 records here, of which the leader has all; nothing else here is in its log."""
    copies = beginning_at(30)
    copies.note_committed(KEY, 30)
    assert copies.ends() == {KEY: 30} and not copies.begins_anew(m.Cut(1, KEY, [], "", 0, 0, 30))
    cut = m.Cut(2, KEY, [], "", 0, 0, 0)
    assert copies.begins_anew(cut)
    copies.apply(cut, memoryview(b""))
    assert copies.ends() == {KEY: 0} and copies.marks() == {KEY: 30}
    filled(copies, log(2, epoch=2))
    assert copies.ends() == {KEY: 20} and copies.marks() == {KEY: 30}


def test_a_copy_begins_anew_once_nothing_of_it_is_being_indexed() -> None:
    copies = beginning_at(30)
    ends: list[dict[str, int]] = []

    class Job(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            ends.append(copies.ends())

    copies._indexing = Job()
    copies.apply(m.Cut(2, KEY, [], "", 0, 0, 0), memoryview(b""))
    assert ends == [{KEY: 30}] and copies.ends() == {KEY: 0}


def test_a_copy_without_a_record_says_where_it_begins() -> None:
    copies = filled(blank(), beginning_at(30))
    assert copies.ends() == {KEY: 30}


def test_a_copy_without_the_names_of_what_was_removed_is_no_ones_log() -> None:
    """A claimant that began with it would count its topics' offsets anew: what is committed speaks against it."""
    copies = blank()
    copies.apply(m.Cut(1, KEY, [], "", 0, 0, 30), memoryview(b""))
    assert copies.ends() == {KEY: 0} and copies.holdings()[KEY][0] == 0 and copies.marks() == {KEY: 30}
    again = NodeLogCopies(copies._files, "data", COPIES)
    assert again.ends() == {KEY: 0} and again.marks() == {KEY: 30}
    again.apply(m.Names(1, KEY), memoryview(NAMES))
    assert again.ends() == {KEY: 30}
