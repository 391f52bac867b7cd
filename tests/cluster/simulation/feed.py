"""The frames that make a copy of a partition equal to another, as the drivers of both sides send them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import astuple

from commitlog.replica.differences import difference
from commitlog.replica.inventory import SegmentState
from rumq.cluster.replication import messages as m
from tests.cluster.simulation.disk import MemoryLogs
from tests.cluster.simulation.image import HEADER_BYTES, RECORD_BYTES

Frame = tuple[m.Cut | m.Open | m.Write | m.TrimCopy, memoryview]
Frames = Iterator[Frame]
NOTHING = memoryview(b"")
BLOCK_BYTES = 6 * RECORD_BYTES


class Cursor:
    """How far a copy has been sent a log. name, stop: of the segment, and the byte behind what was sent of it

    salt: of the file that the byte is in"""

    def __init__(self, name: str, stop: int, salt: int) -> None:
        self.name, self.stop, self.salt = name, stop, salt
        self.is_waiting = False  # for its pace


def cut_of(logs: MemoryLogs, partition: str, theirs: list[m.SegmentInfo], epoch: int) -> tuple[m.Cut, Cursor]:
    """The cut that makes a copy a prefix of this one, and from where it is to be sent the rest."""
    ours = logs.inventory(partition)
    found = difference([SegmentState(*astuple(s)) for s in ours], [SegmentState(*astuple(s)) for s in theirs])
    first = max(logs.first_lsn(partition), kept_from(theirs, found.drop))
    cut = m.Cut(
        epoch, partition, found.drop, found.name, found.end_lsn, found.stop, first, found.salt, found.refill,
        found.refill_lsn,
    )  # fmt: skip
    if found.send_index < len(ours) and found.position:
        return cut, Cursor(ours[found.send_index].name, found.position, ours[found.send_index].salt)
    before = ours[found.send_index - 1] if found.send_index else None
    return cut, Cursor(before.name, before.stop, before.salt) if before is not None else Cursor("", 0, 0)


def kept_from(theirs: list[m.SegmentInfo], drop: list[str]) -> int:
    return next((each.base_lsn for each in theirs if each.name not in drop), 0)


def frames_behind(logs: MemoryLogs, partition: str, cursor: Cursor, epoch: int) -> Frames:
    """What a copy lacks; moves the cursor. KeyError: retention has removed what comes next, or it was packed."""
    while True:
        segments = logs.segments(partition)
        at = next((n for n, each in enumerate(segments) if each.name == cursor.name), -1)
        if at < 0 and cursor.name:
            raise KeyError(cursor.name)
        if at >= 0 and cursor.salt != segments[at].salt:
            raise KeyError(cursor.name)  # bytes of another file
        if at >= 0 and cursor.stop < segments[at].stop:
            segment, start = segments[at], cursor.stop
            data = bytes(segment.data[start - HEADER_BYTES : start - HEADER_BYTES + BLOCK_BYTES])
            cursor.stop += len(data)
            yield m.Write(epoch, partition, segment.name, start), memoryview(data)
        elif at + 1 < len(segments):
            segment = segments[at + 1]
            cursor.name, cursor.stop, cursor.salt = segment.name, HEADER_BYTES, segment.salt
            yield m.Open(epoch, partition, segment.name, segment.base_lsn), memoryview(segment.opening)
        else:
            return


def frames_of(logs: MemoryLogs, partition: str, have: list[m.SegmentInfo], epoch: int) -> Frames:
    cut, cursor = cut_of(logs, partition, have, epoch)
    yield cut, NOTHING
    yield from frames_behind(logs, partition, cursor, epoch)
