"""Finished segments of a copy are read again: damage is found, put aside, and filled by the leader."""

from typing import Any

import pytest

from commitlog.format.segment import SEGMENT_HEADER_BYTES, opening, walk
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.cluster.node.log_copies import NodeLogCopies
from rumq.cluster.node.upkeep.copy_scrubber import ASIDE, IDLE_SECONDS, CopyScrubber, Damage, put_aside
from rumq.cluster.replication.messages import Cut
from tests.cluster.node.world import COPIES, KEY
from tests.commitlog.records import append, mark, opened, some_records, write

RATE = 1000.0
NOTHING = memoryview(b"")


def log_of(groups: int) -> SimulatedFiles:
    """A partition of several segments, whose process was killed."""
    files = SimulatedFiles()
    partition = opened(files, segment_bytes_max=20_000).partitions[0]
    for group in range(groups):
        append(partition, some_records(10, 10 * group))
        write(partition)
    mark(partition)
    return files.after_kill()


def one_round(scrubber: CopyScrubber, now: float = 0.0) -> tuple[Damage | None, float]:
    """What a round finds, and when it ends."""
    before = scrubber.rounds
    while scrubber.rounds == before:
        found = scrubber.step(now)
        if found is not None:
            return found, now
        now = max(now, scrubber._next) if scrubber.rounds == before else now
    return None, now


def test_a_segment_that_is_packed_between_two_pieces_is_no_damage() -> None:
    """It was listed with the end of another file, which may be open."""
    for steps in range(12):
        files = log_of(60)
        copies = NodeLogCopies(files, "data", COPIES)
        scrubber = CopyScrubber(files, copies, 1 << 30, 0.0)
        for now in range(steps):
            assert scrubber.step(float(now)) is None
        copies.note_committed(KEY, copies.ends()[KEY])
        for _ in range(20):
            copies.work()
            if copies._indexing is not None:
                copies._indexing.result()
        packed = 0
        while (taken := copies.take_packing(1001 + 2 * packed)) is not None:
            while not taken[1].step():
                pass
            packed += taken[1].packed is not None and copies.replace_packed(*taken)
        assert packed > 2
        damage, _ = one_round(scrubber, float(steps))
        assert damage is None, f"packed after {steps} steps"
        copies.close()


def test_sound_copies_are_read_round_after_round_as_slowly_as_is_wanted() -> None:
    files = log_of(60)
    copies = NodeLogCopies(files, "data", COPIES)
    scrubber = CopyScrubber(files, copies, int(RATE), 0.0)
    size = sum(segment.stop - SEGMENT_HEADER_BYTES for _, segment in copies.finished())
    found, ended = one_round(scrubber)
    assert found is None and len(copies.finished()) > 3
    assert ended == pytest.approx(size / RATE)
    reads = len(files.looks)
    assert scrubber.step(ended + IDLE_SECONDS - 1) is None and len(files.looks) == reads
    assert one_round(scrubber, ended + IDLE_SECONDS)[0] is None and scrubber.rounds == 2


@pytest.mark.parametrize("at", [4096 + 8, 4096 + 200])
def test_damage_is_found_put_aside_and_sent_again(at: int) -> None:
    """In a header, and in a body."""
    files, source = log_of(60), NodeLogCopies(log_of(60), "data", COPIES)
    copies = NodeLogCopies(files, "data", COPIES)
    directory, segment = copies.finished()[1]
    files.damage(f"{directory}/{segment.name}", at)
    found, _ = one_round(CopyScrubber(files, copies, 1 << 30, 0.0))
    assert found is not None and found.path.endswith(segment.name)
    told: list[tuple[str, dict[str, Any]]] = []
    put_aside(files, found, lambda name, **fields: told.append((name, fields)), 2)
    assert told == [("cluster.copy_damaged", {"shard": 2, "why": found.why})]
    assert files.exists(found.path + ASIDE)
    copies.close()
    again = NodeLogCopies(files.after_kill(), "data", COPIES)
    assert again.doubt
    for message, raw in served(source, again):
        again.apply(message, memoryview(raw))
    again.sync()
    assert not again.doubt and again.ends() == source.ends()


def served(source: NodeLogCopies, to: NodeLogCopies) -> list[tuple[Any, bytes]]:
    answers = source.serve(1, KEY, to.inventory(KEY))
    return [(message, b"".join(map(bytes, raw))) for message, raw in answers if hasattr(message, "name") or raw]


def cut_behind(files: SimulatedFiles, copies: NodeLogCopies, number: int) -> None:
    """A new leader does not have the last chunk of a finished segment, nor what follows."""
    directory, segment = copies.finished()[number]
    path = f"{directory}/{segment.name}"
    handle = files.open(path)
    chunks = list(walk(files, handle, opening(files, handle, path).header.salt, SEGMENT_HEADER_BYTES, segment.stop))
    files.close(handle)
    place, header = chunks[-1]
    later = [each.name for each in copies.inventory(KEY) if each.base_lsn >= segment.end_lsn]
    copies.apply(Cut(2, KEY, later, segment.name, segment.end_lsn - header.count, place, 0), NOTHING)


@pytest.mark.parametrize("is_read", [False, True])
def test_a_segment_that_a_new_leader_has_cut_meanwhile_is_not_damaged(is_read: bool) -> None:
    """Put aside, it would cost this copy its vote just when a leader has gone. is_read: the reading has begun"""
    files = log_of(60)
    copies = NodeLogCopies(files, "data", COPIES)
    scrubber = CopyScrubber(files, copies, 1, 0.0)
    now = 0.0
    for _ in range(2 if is_read else 1):
        assert scrubber.step(now) is None
        now = max(now, scrubber._next)
    cut_behind(files, copies, 0)
    assert copies.finished() == []
    assert one_round(scrubber, now)[0] is None and scrubber.rounds == 1


def test_what_was_read_while_a_segment_changed_is_read_again_before_it_counts_as_damaged() -> None:
    files = log_of(60)
    copies = NodeLogCopies(files, "data", COPIES)
    scrubber = CopyScrubber(files, copies, 1 << 30, 0.0)
    assert scrubber.step(0.0) is None
    directory, segment = copies.finished()[0]
    path = f"{directory}/{segment.name}"
    scrubber._pieces = iter([Damage(path, "as an older state of the file would look")])
    scrubber._reading = directory, segment
    assert one_round(scrubber)[0] is None
    files.damage(path, 4096 + 200)
    found, _ = one_round(scrubber, 1e9)
    assert found is not None and found.path == path


def test_it_can_be_switched_off() -> None:
    files = log_of(60)
    scrubber = CopyScrubber(files, NodeLogCopies(files, "data", COPIES), 0, 0.0)
    assert scrubber.step(1e9) is None and scrubber.rounds == 0


def test_a_segment_that_retention_removes_meanwhile_is_left_out() -> None:
    files = log_of(60)
    copies = NodeLogCopies(files, "data", COPIES)
    scrubber = CopyScrubber(files, copies, 1 << 30, 0.0)
    assert scrubber.step(0.0) is None
    directory, segment = copies.finished()[2]
    files.remove(f"{directory}/{segment.name}")
    assert one_round(scrubber)[0] is None
