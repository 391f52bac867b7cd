"""A replica's disk: segments in memory, of which a power cut loses what was not synced, and the epochs it has noted.

An operation is applied to what processes see at once, and to what is durable when it is synced. A power cut keeps a
prefix of the operations of each partition, the last of them perhaps in part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from struct import pack, unpack
from typing import Any, NamedTuple

import msgspec

from commitlog.errors import LogError
from commitlog.replica.replica_note import Note, Voters, joined
from commitlog.testing.memory_state import MemoryState
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.ports import CutRefused, DataFrame
from tests.cluster.simulation.image import HEADER_BYTES, PACKED_BYTES, RECORD_BYTES, Image, Segment

PARTITIONS = ("main/g0/p0", "main/g0/p1")


class Crash(BaseException):
    """The process ends at this very operation. power: un-synced data is lost too"""

    def __init__(self, *, power: bool) -> None:
        self.power = power


class Misfit(LogError):
    """What was sent does not continue the copy, or would cut what is committed."""


Operation = tuple[Callable[..., None], tuple[object, ...]]


class Part:
    """journal: what is not synced of `now`"""

    def __init__(self) -> None:
        self.durable, self.now = Image(), Image()
        self.journal: list[Operation] = []
        self.is_touched = False

    def do(self, call: Callable[..., None], *args: object) -> None:
        call(self.now, *args)
        self.journal.append((call, args))

    def sync(self, count: int) -> None:
        for call, args in self.journal[:count]:
            call(self.durable, *args)
        del self.journal[:count]

    def lose_power(self, random: Random) -> None:
        kept = random.randrange(len(self.journal) + 1) if self.journal else 0
        torn = self.journal[kept] if kept < len(self.journal) else None
        self.sync(kept)
        if torn is not None and torn[0] is Image.write:
            data = torn[1][0]
            assert isinstance(data, bytes)
            width = self.durable.segments[-1].width
            self.durable.write(data[: random.randrange(len(data) // width + 1) * width])
        self.journal.clear()
        self.now = self.durable.copy()


class DiskImage(NamedTuple):
    """Everything that is durable at one moment."""

    note: Note
    parts: dict[str, Image]


class Disk:
    """spent: seconds that the process's calls have taken; sync_seconds: of one sync; trap: where a call crashes

    told: by partition, what a leader has said is committed; kept through crashes, for the checks
    away: the volume with the partitions and the journal, while it is not mounted
    was_harmed: it has lost what was synced, by a fault that its process cannot have prevented
    begins_anew: a copy was emptied, as its leader's log begins before it
    sent_again: segments whose file another one has taken the place of"""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.parts = {key: Part() for key in PARTITIONS}
        self.note = Note(disk="sim")
        self.spent = 0.0
        self.sync_seconds = 0.0005
        self.is_failing = self.was_harmed = self.begins_anew = False
        self.sent_again = 0
        self.trap = ""
        self.told = dict.fromkeys(PARTITIONS, 0)
        self.away: DiskImage | None = None
        self.faults: list[str] = []

    @property
    def promised(self) -> int:
        return self.note.promised

    @property
    def opened(self) -> int:
        return self.note.opened

    @property
    def is_doubted(self) -> bool:
        """Its process says, or says when it starts, that it may lack what it had acknowledged."""
        return self.opened == m.DOUBTED or any(lacks(DiskState(self), key, part) for key, part in self.parts.items())

    def point(self, name: str) -> None:
        if self.is_failing and name != "read":
            raise OSError("the disk fails")
        if self.trap == name:
            self.trap = ""
            raise Crash(power=self.random.random() < 0.5)

    def lose_power(self) -> None:
        for part in self.parts.values():
            part.lose_power(self.random)

    def damage(self) -> None:
        """The end of a partition cannot be read any more."""
        self.was_harmed = True
        part = self.random.choice(list(self.parts.values()))
        if part.durable.segments:
            last = part.durable.segments[-1]
            del last.data[self.random.randrange(len(last.data) // last.width + 1) * last.width :]
            if len(part.durable.segments) > 1 and self.random.random() < 0.5:
                part.durable.segments.pop()
        part.now = part.durable.copy()
        self.note = self.note._replace(opened=m.DOUBTED, opened_term="")
        self.told = dict.fromkeys(PARTITIONS, 0)

    def vanish(self, partitions: list[str], image: DiskImage | None) -> None:
        """Directories are gone, as of a volume that is not mounted, or those of an old copy. The notes are there."""
        self.was_harmed = True
        for key in partitions:
            self.parts[key] = part = Part()
            if image is not None:
                part.durable, part.now = image.parts[key].copy(), image.parts[key].copy()
            self.told[key] = 0

    def unmount(self) -> None:
        """The next start finds empty directories, and the notes of `_cluster`."""
        self.away = self.image()
        self.vanish(list(self.parts), None)

    def mount(self, volume: DiskImage) -> None:
        """It hides what was written meanwhile in its place."""
        for key, part in self.parts.items():
            part.durable, part.now, part.journal = volume.parts[key].copy(), volume.parts[key].copy(), []
        self.note, doubt = joined(self.note, volume.note)
        if doubt:
            self.note = self.note._replace(opened=m.DOUBTED, opened_term="", forgets=True)
        self.told = dict.fromkeys(PARTITIONS, 0)
        self.away = None

    def image(self) -> DiskImage:
        """What a copy of the disk has that is made now."""
        return DiskImage(self.note, {key: part.durable.copy() for key, part in self.parts.items()})

    def restore(self, image: DiskImage) -> None:
        """The disk is an old copy from here on. Its stamp tells so, before its process asks or answers anything."""
        self.was_harmed = True
        for key, part in self.parts.items():
            part.durable, part.now, part.journal = image.parts[key].copy(), image.parts[key].copy(), []
        self.note = image.note._replace(opened=m.DOUBTED, opened_term="", forgets=True, whole=None)
        self.told = dict.fromkeys(PARTITIONS, 0)

    def values(self, partition: str) -> list[int]:
        """Of the whole log, from its first lsn on."""
        found: list[int] = []
        for each in self.parts[partition].now.segments:
            found += each.values
        return found


class DiskState(MemoryState):
    """The real notes, over a simulated disk: durable when a call returns, unless it crashes in between."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk.note)
        self._disk = disk

    def promise(self, epoch: int, term: str = "", forced: int = 0) -> None:
        self._disk.point("promise.before")
        super().promise(epoch, term, forced)
        self._disk.point("promise.after")

    def open(self, epoch: int, term: str = "", voters: Voters | None = None) -> None:
        self._disk.point("open.before")
        super().open(epoch, term, voters)
        self._disk.point("open.after")

    def _save(self, change: Mapping[str, Any]) -> None:
        super()._save(change)
        if change:
            self._keep()

    def _keep(self) -> None:
        self._disk.note = self._note
        self._disk.spent += self._disk.sync_seconds


def lacks(state: DiskState, key: str, part: Part) -> bool:
    return state.maybe_lack(key, part.now.first_lsn, part.now.end_lsn, [s.name for s in part.now.segments]) is not None


def last_name(part: Part) -> str:
    return part.now.segments[-1].name if part.now.segments else ""


class Refill:
    """segment: what was sent of it"""

    def __init__(self, name: str, end_lsn: int) -> None:
        self.name, self.end_lsn = name, end_lsn
        self.segment: Segment | None = None


class MemoryLogs:
    """`LogCopies`, and what a leader's writer does. is_guarded: refuses to cut below the mark"""

    is_guarded = True
    sync_is_real = True

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._parts = disk.parts
        self._marks = {**dict.fromkeys(PARTITIONS, 0), **disk.note.marks}
        self._guards = dict(self._marks)  # nothing below is cut
        self._refills: dict[str, Refill] = {}  # of last segments that are sent again, by partition

    def ends(self) -> dict[str, int]:
        self._sync_parts()
        return {key: part.now.end_lsn for key, part in self._parts.items()}

    def inventory(self, partition: str) -> list[m.SegmentInfo]:
        segments = self._parts[partition].now.segments
        return [
            m.SegmentInfo(s.name, s.base_lsn, s.end_lsn, s.stop, n < len(segments) - 1, s.salt)
            for n, s in enumerate(segments)
        ]

    def segments(self, partition: str) -> list[Segment]:
        return self._parts[partition].now.segments

    def first_lsn(self, partition: str) -> int:
        return self._parts[partition].now.first_lsn

    def begins_anew(self, cut: m.Cut) -> bool:
        image = self._parts[cut.partition].now
        is_refused = self.is_guarded and self._guards[cut.partition] > image.first_lsn
        return not is_refused and image.begins_anew(cut.drop, cut.name, cut.first_lsn)

    def apply(self, frame: DataFrame, raw: memoryview) -> None:
        self._disk.point("apply")
        part = self._parts[frame.partition]
        part.is_touched = True
        refill = self._refills.get(frame.partition)
        if refill is not None and isinstance(frame, m.Open | m.Write):
            self._refill(part, refill, frame, bytes(raw))
        elif isinstance(frame, m.Write):
            last = part.now.segments[-1] if part.now.segments else None
            if last is None or last.name != frame.name or last.stop != frame.position:
                self._misfit(f"{frame} behind {last and (last.name, last.stop)}")
            part.do(Image.write, bytes(raw))
        elif isinstance(frame, m.Open):
            if part.now.end_lsn != frame.base_lsn:
                self._misfit(f"{frame} behind lsn {part.now.end_lsn}")
            part.do(Image.open, frame.name, frame.base_lsn, bytes(raw))
        elif isinstance(frame, m.TrimCopy):
            part.do(Image.trim, frame.first_lsn)
        elif isinstance(frame, m.Cut):
            self._cut(part, frame)

    def _refill(self, part: Part, refill: Refill, frame: m.Open | m.Write, raw: bytes) -> None:
        sent = refill.segment
        if frame.name != refill.name:
            self._misfit(f"{frame} while {refill.name} is sent again")
        elif isinstance(frame, m.Open):
            refill.segment = Segment(frame.name, frame.base_lsn, b"", *unpack("<qq", raw))
        elif sent is None or sent.stop != frame.position:
            self._misfit(f"{frame} behind {sent and sent.stop} of what is sent again")
        else:
            sent.data += raw
        if refill.segment is not None and refill.segment.end_lsn >= refill.end_lsn:
            part.do(Image.refill, refill.segment)
            self._disk.sent_again += 1
            del self._refills[frame.partition]

    def _cut(self, part: Part, frame: m.Cut) -> None:
        self._refills.pop(frame.partition, None)
        drop, stop = frozenset(frame.drop), frame.stop
        if frame.name:
            left = [each for each in part.now.segments if each.name not in frame.drop]
            if left and left[-1].name == frame.name and left[-1].salt != frame.salt:
                if left[-1].width == PACKED_BYTES:  # a chunk of many records
                    self._cut(part, msgspec.structs.replace(frame, drop=[*frame.drop, frame.name], name=""))
                    return
                stop = HEADER_BYTES + (frame.end_lsn - left[-1].base_lsn) * RECORD_BYTES
            if not left or left[-1].name != frame.name or left[-1].stop < stop:
                self._misfit(f"{frame} of {[(s.name, s.stop) for s in part.now.segments]}")
        after = part.now.copy()
        cut = (drop, frame.name, stop, frame.first_lsn)
        after.cut(*cut)
        before = part.now.end_lsn
        if self.begins_anew(frame):
            after.first_lsn = part.now.first_lsn  # what retention has removed here is not cut
        if after.end_lsn < min(before, self._disk.told[frame.partition]):
            self._disk.faults.append(
                f"{frame} cuts {before} to {after.end_lsn}, {self._disk.told[frame.partition]} are committed"
            )
        if self.is_guarded and after.end_lsn < min(before, self._guards[frame.partition]):
            raise CutRefused(frame.partition, f"{frame.partition} would end at {after.end_lsn}, below its mark")
        if self.begins_anew(frame):
            self._disk.begins_anew = True
            self._marks[frame.partition] = self.marks()[frame.partition]
            self._guards[frame.partition] = self._disk.told[frame.partition] = frame.first_lsn
        part.do(Image.cut, *cut)
        if frame.refill:
            self._refills[frame.partition] = Refill(frame.refill, frame.refill_lsn)

    def _misfit(self, what: str) -> None:
        self._disk.faults.append(f"does not fit: {what}")
        raise Misfit(what)

    def sync(self) -> list[tuple[str, int, str, int]]:
        self._sync_parts()
        found = []
        for key, part in self._parts.items():
            if part.is_touched:
                part.is_touched = False
                last = part.now.segments[-1] if part.now.segments else None
                found.append((key, part.now.end_lsn, last.name if last else "", last.stop if last else 0))
        return found

    def _sync_parts(self) -> None:
        if not any(part.journal for part in self._parts.values()):
            return
        self._disk.point("sync.before")
        self._disk.spent += self._disk.sync_seconds
        if self.sync_is_real:
            for part in self._parts.values():
                part.sync(len(part.journal))
        self._disk.point("sync.after")

    def note_committed(self, partition: str, lsn: int) -> None:
        self._marks[partition] = max(lsn, self._marks[partition])
        self._guards[partition] = max(lsn, self._guards[partition])
        self._disk.told[partition] = max(lsn, self._disk.told[partition])

    def holdings(self) -> dict[str, tuple[int, str]]:
        return {key: (end, last_name(self._parts[key])) for key, end in self.ends().items()}

    def marks(self) -> dict[str, int]:
        found = {key: max(lsn, self.first_lsn(key)) for key, lsn in self._marks.items()}
        return {key: lsn for key, lsn in found.items() if lsn}

    def restore_notes(self, state: DiskState) -> bool:
        """As `NodeLogCopies` does. returns: whether a copy may lack what it had acknowledged"""
        short = [key for key, part in self._parts.items() if lacks(state, key, part)]
        self._guards.update(dict.fromkeys(short, 0))
        return bool(short)

    def forget_marks(self) -> None:
        self._marks, self._guards = dict.fromkeys(PARTITIONS, 0), dict.fromkeys(PARTITIONS, 0)
        self._disk.told = dict.fromkeys(PARTITIONS, 0)

    # The leader's writer

    def open_segment(self, partition: str, name: str, salt: int) -> None:
        part = self._parts[partition]
        part.do(Image.open, name, part.now.end_lsn, Segment(name, 0, b"", salt).opening)

    def append(self, partition: str, values: list[int]) -> int:
        """The lsn of the first."""
        part = self._parts[partition]
        lsn = part.now.end_lsn
        part.do(Image.write, pack(f"<{len(values)}q", *values))
        return lsn

    def trim(self, partition: str, first_lsn: int) -> None:
        self._parts[partition].do(Image.trim, first_lsn)

    # Packing, of a leader and of others

    def pack(self, partition: str, below: int, salt: int) -> bool:
        """Pack the first finished segment that ends at or below an lsn; whether there is one."""
        part = self._parts[partition]
        for segment in part.now.segments[:-1]:
            if segment.width == RECORD_BYTES and segment.base_lsn < segment.end_lsn <= below:
                part.do(Image.pack, segment.name, salt)
                return True
        return False

    def guard(self, partition: str) -> int:
        """What it knows to be committed of what it has."""
        return self._guards[partition]

    def begin_sync(self) -> list[tuple[str, int, int]]:
        """(partition, operations, the lsn behind them) of what a sync that begins now will make durable."""
        return [(k, len(p.journal), p.now.end_lsn) for k, p in self._parts.items() if p.journal]

    def end_sync(self, begun: list[tuple[str, int, int]]) -> None:
        if self.sync_is_real:
            for key, count, _ in begun:
                self._parts[key].sync(count)
