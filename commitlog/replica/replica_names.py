"""The topics and publishers of a copy: numbers, names, next offsets. docs/reference/log-format.md, "topics.snap".

As `dictionary`, for one who learns of names by reading finished segments, and may have to lose the newest of
them. Used by the thread that writes and the one that indexes, one at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from threading import Lock

from commitlog.disk.files import Files, replace_file
from commitlog.index.dictionary import (
    SNAPSHOT,
    Dictionary,
    DictionarySnapshot,
    decode_snapshot,
    maybe_snapshot,
    snapshot_pieces,
)
from commitlog.index.index import index_path, maybe_index, read_segment, write_index
from commitlog.index.index_builder import Index
from commitlog.names.publisher_names import PublisherNames
from commitlog.names.topic_table import topic_table
from commitlog.replica.inventory import SegmentState

SAVED_AT_ONCE_TOPICS_MAX = 1 << 16  # else now and then: who opens the copy reads the indexes of what is not saved


class ReplicaNames:
    """lsn: every finished segment below is in it. Those that are not are queued: `queue`, `maybe_job`."""

    def __init__(self, files: Files, directory: str, first_lsn: int) -> None:
        """raises: OSError"""
        self._files, self._directory = files, directory
        self._lock = Lock()
        self._topics: list[bytes] = []
        self._publishers = PublisherNames({}, 1)
        self._dictionary = self._loaded(first_lsn)
        self._unindexed: deque[SegmentState] = deque()

    @property
    def lsn(self) -> int:
        return self._dictionary.lsn

    @property
    def saved_lsn(self) -> int:
        """The names of every record below are on disk; -1: none are."""
        return self._dictionary.saved_lsn

    def queue(self, segments: Iterable[SegmentState]) -> None:
        """The finished segments of the copy, in order: those that are not in it are to be indexed."""
        self._unindexed = deque(segment for segment in segments if segment.end_lsn > self.lsn)

    def add_to_queue(self, segment: SegmentState) -> None:
        """It has just been finished."""
        self._unindexed.append(segment)

    def drop_from_queue(self, segments: Iterable[SegmentState]) -> None:
        """They are removed, or are not finished any more."""
        names = {segment.name for segment in segments}
        self._unindexed = deque(segment for segment in self._unindexed if segment.name not in names)

    def maybe_job(self, committed_lsn: int) -> SealJob | None:
        """The indexing of the first queued segment, if all of it is committed."""
        if not self._unindexed or self._unindexed[0].end_lsn > committed_lsn:
            return None
        return SealJob(self, self._unindexed.popleft())

    def index(self, segment: SegmentState) -> None:
        """Read a finished and synced segment; writes its index where it has none. For any thread. raises: OSError"""
        path = f"{self._directory}/{segment.name}"
        index = maybe_index(self._files, path, segment.end_lsn, segment.stop)
        is_new = index is None
        if index is None:
            index = read_segment(self._files, path, segment.stop)
        with self._lock:
            self._take(index, segment)
            if len(self._topics) <= SAVED_AT_ONCE_TOPICS_MAX:
                self._dictionary.save(self._dictionary.lsn)
        if is_new:
            write_index(self._files, path, index, segment.end_lsn, segment.stop)
            if not self._files.exists(path):  # removed meanwhile
                self._files.remove(index_path(path))

    def cover(self, segments: Iterable[SegmentState], lsn: int) -> None:
        """Save everything below an lsn; reads those segments that were not read yet. raises: OSError

        segments: those of the copy that begin below it, and are removed next"""
        with self._lock:
            for segment in segments:
                if segment.end_lsn > self._dictionary.lsn:
                    path = f"{self._directory}/{segment.name}"
                    self._take(read_segment(self._files, path, segment.stop), segment)
            if self._dictionary.lsn < lsn:
                self._dictionary.lsn = lsn  # the leader has nothing below, and we not either
            self._dictionary.save(lsn)

    def cut(self, lsn: int, first_lsn: int, dropped: Iterable[SegmentState]) -> None:
        """Forget what is known only of records from an lsn on; saved before their segments go. raises: OSError

        first_lsn: of the copy; dropped: the finished segments with such records"""
        with self._lock:
            if self._dictionary.lsn <= lsn and self._dictionary.saved_lsn <= lsn:
                return
            snapshot = maybe_snapshot(self._files, self._directory)
            if snapshot is not None and snapshot.lsn > lsn:
                for segment in dropped:
                    if segment.base_lsn < snapshot.lsn:
                        path = f"{self._directory}/{segment.name}"
                        lower_offsets(snapshot, read_segment(self._files, path, segment.stop), segment.base_lsn, lsn)
                forget_unused(snapshot)
                replace_file(self._files, f"{self._directory}/{SNAPSHOT}", *snapshot_pieces(snapshot._replace(lsn=lsn)))
            self._dictionary = self._loaded(first_lsn)

    def forget(self, first_lsn: int) -> None:
        """Of a copy that begins anew at an lsn. raises: OSError"""
        path = f"{self._directory}/{SNAPSHOT}"
        with self._lock:
            if self._files.exists(path):
                self._files.remove(path)
                self._files.sync_directory(self._directory)
            self._dictionary = self._loaded(first_lsn)

    def adopt(self, raw: bytes, first_lsn: int) -> bool:
        """Take the names that the leader saved, as those of the log below its first record; False if they are damaged.

        For a copy that begins there. raises: OSError"""
        snapshot = decode_snapshot(raw)
        if snapshot is None:
            return False
        with self._lock:
            replace_file(
                self._files,
                f"{self._directory}/{SNAPSHOT}",
                *snapshot_pieces(snapshot._replace(lsn=first_lsn)),
            )
            self._dictionary = self._loaded(first_lsn)
        return True

    def _loaded(self, first_lsn: int) -> Dictionary:
        snapshot = maybe_snapshot(self._files, self._directory)
        lsn = saved_lsn = -1
        offsets = array("Q")
        self._topics, self._publishers = [], PublisherNames({}, 1)
        if snapshot is not None:
            lsn = saved_lsn = snapshot.lsn
            self._topics, offsets = snapshot.topics, snapshot.offsets
            self._publishers = PublisherNames(snapshot.publishers, snapshot.publishers_end)
        return Dictionary(
            self._files, self._directory, self._topics, self._publishers, offsets, max(lsn, first_lsn), saved_lsn
        )

    def _take(self, index: Index, segment: SegmentState) -> None:
        highest = max((*index.names, topic_table(index.topics).highest))
        self._topics.extend([b""] * (highest + 1 - len(self._topics)))
        for number, name in index.names.items():
            self._topics[number] = name
        self._publishers.learn(index.publishers)
        self._dictionary.take(index, segment.base_lsn, segment.end_lsn)


def lower_offsets(snapshot: DictionarySnapshot, index: Index, base_lsn: int, lsn: int) -> None:
    """The next offset of each topic is that of its first record from an lsn on, of those in this segment."""
    first_row = max(0, lsn - base_lsn)
    for number, topic in index.topics.items():
        if number < len(snapshot.offsets):
            stop = topic.start + topic.records
            at = bisect_left(index.rows, first_row, topic.start, stop)
            if at < stop:
                offset = topic.first + at - topic.start
                snapshot.offsets[number] = min(snapshot.offsets[number], offset)


def forget_unused(snapshot: DictionarySnapshot) -> None:
    """Leave out topics at the end that have no record: their numbers may be given to others."""
    while snapshot.offsets and not snapshot.offsets[-1]:
        snapshot.offsets.pop()
        snapshot.topics.pop()


class SealJob:
    """The indexing of a finished segment of a copy, for a thread that may wait."""

    def __init__(self, names: ReplicaNames, segment: SegmentState) -> None:
        self._names, self.segment = names, segment

    def run(self) -> None:
        """raises: OSError; the segment is then read when it is removed, or at the next start."""
        try:
            self._names.index(self.segment)
        except FileNotFoundError:
            pass  # removed meanwhile
