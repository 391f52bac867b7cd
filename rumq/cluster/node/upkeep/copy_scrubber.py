"""Reads the finished segments of copies again, slowly and round after round: a flipped bit is found, and repaired.

A damaged segment is put aside; the copy that is opened without it is in doubt, has no vote, and gets it from the
leader again. docs/explanation/replication.md, R11"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple, Protocol

from commitlog.chunk import HEADER_BYTES
from commitlog.disk.files import Files
from commitlog.format.segment import SEGMENT_HEADER_BYTES, body_fault, opening, walk
from commitlog.replica.inventory import SegmentState

PIECE_BYTES = 1 << 18  # read of a segment at once: others wait at most that long
IDLE_SECONDS = 60.0  # pause after each round over all copies
ASIDE = ".damaged"  # suffix of a segment that was put aside


class FinishedSegments(Protocol):
    """`rumq.cluster.node.log_copies`"""

    def finished(self) -> list[tuple[str, SegmentState]]:
        """(directory, segment) of every finished segment."""


class Damage(NamedTuple):
    """path: of the segment; why: what is wrong, and where"""

    path: str
    why: str


class CopyScrubber:
    """rounds: that are over"""

    def __init__(self, files: Files, copies: FinishedSegments, bytes_per_second: int, now: float) -> None:
        """bytes_per_second: 0 switches it off; now: monotonic seconds"""
        self._files, self._copies, self._rate = files, copies, bytes_per_second
        self._next = now if bytes_per_second else inf
        self._is_reading = False
        self._segments: list[tuple[str, SegmentState]] = []
        self._reading: tuple[str, SegmentState] | None = None
        self._pieces: Iterator[int | Damage] = iter(())
        self.rounds = 0

    def step(self, now: float) -> Damage | None:
        """Read a piece, if it is time. raises: OSError"""
        if now < self._next:
            return None
        for found in self._pieces:
            if isinstance(found, Damage):
                return self._maybe_confirmed()
            self._next = now + found / self._rate
            return None
        if self._segments:
            directory, segment = self._reading = self._segments.pop(0)
            self._pieces = self._read(f"{directory}/{segment.name}", segment.stop)
        elif self._is_reading:
            self._is_reading = False
            self.rounds += 1
            self._next = now + IDLE_SECONDS
        else:
            self._is_reading = True
            self._segments = self._copies.finished()
        return None

    def _maybe_confirmed(self) -> Damage | None:
        """What is wrong with the segment as it is now: a new leader may have cut it since it was listed, or while it
        was read, and a copy that is put aside for that has no vote just when it is needed. raises: OSError"""
        self._pieces = iter(())
        if self._reading not in self._copies.finished():
            return None
        directory, segment = self._reading
        whole = self._read(f"{directory}/{segment.name}", segment.stop)
        return next((each for each in whole if isinstance(each, Damage)), None)

    def _read(self, path: str, stop: int) -> Iterator[int | Damage]:
        """Sizes of pieces that are sound, or the damage that ends it. raises: OSError"""
        if not self._files.exists(path):
            return  # retention has removed it
        handle = self._files.open(path)
        try:
            salt = opening(self._files, handle, path).header.salt
            position, read = SEGMENT_HEADER_BYTES, 0
            for at, header in walk(self._files, handle, salt, position, stop):
                body = self._files.read(handle, at + HEADER_BYTES, header.body_len)
                fault = body_fault(header, body)
                if fault is not None:
                    yield Damage(path, f"{path} at {at}: {fault}")
                    return
                position = at + header.total_len
                read += header.total_len
                if read >= PIECE_BYTES:
                    yield read
                    read = 0
            if read:
                yield read
            if position < stop:
                yield Damage(path, f"{path} at {position}: the chunk's header is damaged")
        finally:
            self._files.close(handle)


def put_aside(files: Files, damage: Damage, tell: Callable[..., None], shard: int) -> None:
    """Have the next process of this shard open its copy without a segment. raises: OSError"""
    tell("cluster.copy_damaged", shard=shard, why=damage.why)
    files.rename(damage.path, damage.path + ASIDE)
    files.sync_directory(damage.path.rpartition("/")[0])
