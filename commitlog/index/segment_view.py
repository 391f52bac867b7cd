"""One segment file for a reader in another process, and the cache that views of a partition pass on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from commitlog.format.chunk_position import ChunkPosition
from commitlog.format.committed_scan import CommittedScan
from commitlog.format.tail_scan import Tail
from commitlog.index.index_builder import Index


@dataclass
class SegmentView:
    """One segment file. end_lsn: end of its readable records; logical_end: the byte where they end.

    finished: nothing will be appended to it, even after a restart

    first_ts, last_ts: µs since 1970, 0 when it has no records
    """

    path: str
    base_lsn: int
    end_lsn: int
    sealed: bool
    bytes: int
    salt: int
    logical_end: int
    finished: bool = False
    places: list[ChunkPosition] = field(default_factory=list, repr=False)

    @property
    def first_ts(self) -> int:
        return self.places[0].base_ts if self.places else 0

    @property
    def last_ts(self) -> int:
        return self.places[-1].last_ts if self.places else 0


class ScanCache:
    """Scan results of a partition's files, passed from one view to the next.

    scans: path -> scan so far; tails: (path, size, base lsn of the next segment) -> where it ends;
    publishers: (path, salt) -> up to which byte, and number -> client id
    """

    def __init__(self) -> None:
        self.scans: dict[str, CommittedScan] = {}
        self.tails: dict[tuple[str, int, int | None], Tail] = {}
        self.publishers: dict[tuple[str, int], tuple[int, dict[int, bytes]]] = {}

    def keep(self, paths: set[str]) -> None:
        """Drop the others. Another thread may be reading with an earlier view, and add publishers."""
        self.scans = {path: look for path, look in self.scans.items() if path in paths}
        self.tails = {key: tail for key, tail in self.tails.items() if key[0] in paths}
        self.publishers = {key: known for key, known in list(self.publishers.items()) if key[0] in paths}


def hits(index: Index, base_lsn: int, wants: Callable[[bytes], bool]) -> bytearray:
    """For each chunk of an index, whether it has a record of a wanted topic, or of one without a name."""
    rows, found = index.rows, bytearray(len(index.places))
    ends = [place.next_lsn - base_lsn for place in index.places]
    names = index.names
    for number in [n for n in index.topics if (name := names.get(n)) is None or wants(name)]:
        topic = index.topics[number]
        row, stop = topic.start, topic.start + topic.records
        while row < stop:
            at = bisect_left(ends, rows[row] + 1)
            if at == len(ends):
                break
            found[at] = 1
            row = bisect_left(rows, ends[at], row + 1, stop)
    return found
