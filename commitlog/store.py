"""A data directory: held by one broker at a time, with the partitions of every stream in it.

Knows no clock: the time is passed in. docs/log-format.md has the layout."""

from __future__ import annotations

import errno
import os
from array import array
from collections.abc import Callable, Sequence

from commitlog.chunk import Chunk, Gap
from commitlog.errors import DirectoryInUse, FormatTooNew, NotWritable
from commitlog.files import Files, replace_file
from commitlog.lookup import ColdRead
from commitlog.manifest import Manifest
from commitlog.partition import Partition
from commitlog.recovery import Recovered, recover
from commitlog.retention import SNAPSHOT, encode_snapshot
from commitlog.segment import read_header
from commitlog.segments import SegmentList
from commitlog.streams import Matches, StreamSpec, partition_of, stream_of
from commitlog.writing import Names, SegmentWriter

FORMAT = "rumq 1"
GENERATION = 1


class Store:
    """Every partition of every stream, in one list; a topic has one place in it."""

    def __init__(
        self, files: Files, root: str, lock: int, streams: list[StreamSpec], matches: Matches
    ) -> None:
        self._files, self.root, self._lock = files, root, lock
        self._matches = matches
        self.streams = streams
        self.partitions: list[Partition] = []
        self.recovered: list[Recovered] = []
        self._first_of: list[int] = []

    def place(self, topic: str) -> int:
        """Index of the partition that keeps a topic."""
        stream = stream_of(topic, self.streams, self._matches)
        return self._first_of[stream] + partition_of(topic, self.streams[stream].partitions)

    def chunks_with(self, partition: Partition, flag: int) -> list[Chunk | Gap]:
        """Every chunk on disk whose header has `flag`, in order; for the start, before anything is appended."""
        found: list[Chunk | Gap] = []
        for segment in partition.segments.files:
            for place in segment.chunk_places(self._files):
                if segment_flags(self._files, segment.path, place.position) & flag:
                    found += ColdRead(self._files, [segment], place.base_lsn, place.next_lsn, 1).run()
        return found

    def close(self) -> None:
        """Everything has been written: seal the active segments, save the dictionaries, let the directory go."""
        for partition in self.partitions:
            if not partition.pending_bytes and partition.offline is None:
                partition.writer.seal(partition.next_lsn, partition._last_ts)
                snapshot = encode_snapshot(partition.topic_names, partition.next_offsets, partition.next_lsn)
                replace_file(self._files, f"{partition.directory}/{SNAPSHOT}", snapshot)
            partition.writer.close()
        self._files.close(self._lock)


def segment_flags(files: Files, path: str, position: int) -> int:
    handle = files.open(path)
    try:
        return int.from_bytes(files.read(handle, position + 6, 2), "little")
    finally:
        files.close(handle)


def open_store(
    files: Files, root: str, streams: Sequence[StreamSpec], *, matches: Matches, now_us: int,
    boot_id: bytes = bytes(16), random: Callable[[int], bytes] = os.urandom, hot_bytes_max: int = 64 << 20,
    holder: str = "", direct_bytes_min: int = 1 << 17,
) -> Store:  # fmt: skip
    """Open a data directory, or make it, and recover every partition.

    raises: DirectoryInUse, FormatTooNew, NotWritable, each saying what to do
    """
    try:
        lock = hold(files, root, holder)
        store = Store(files, root, lock, list(streams), matches)
        for spec in streams:
            store._first_of.append(len(store.partitions))
            for number in range(spec.partitions):
                open_partition(
                    store, files, root, spec, number, now_us, boot_id, random, hot_bytes_max, direct_bytes_min
                )
    except OSError as fault:
        raise NotWritable(root, reason(fault)) from fault
    return store


def hold(files: Files, root: str, holder: str) -> int:
    files.make_directory(root)
    try:
        lock = files.lock(f"{root}/LOCK", holder)
    except BlockingIOError:
        raise DirectoryInUse(
            root, "another broker holds it: stop that one, or give this one another --data"
        ) from None
    path = f"{root}/FORMAT"
    if files.exists(path):
        handle = files.open(path)
        try:
            said = files.read(handle, 0, 64).decode(errors="replace").strip()
        finally:
            files.close(handle)
        if said != FORMAT:
            files.close(lock)
            raise FormatTooNew(
                root, f"its format is {said!r}, this version reads {FORMAT!r}: use the rumq that wrote it"
            )
    else:
        replace_file(files, path, f"{FORMAT}\n".encode())
    return lock


def reason(fault: OSError) -> str:
    if fault.errno == errno.EROFS:
        return "the file system is read-only: remount it, or give another --data"
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the file system is full: make room, or give another --data"
    if fault.errno in (errno.EACCES, errno.EPERM):
        return "this user may not write there: change the owner, or give another --data"
    if fault.errno in (errno.ENOTDIR, errno.EEXIST):
        return "it is a file, not a directory: give another --data"
    return f"{fault.strerror or fault}: give another --data, or repair this one"


def open_partition(
    store: Store, files: Files, root: str, spec: StreamSpec, number: int, now_us: int, boot_id: bytes,
    random: Callable[[int], bytes], hot_bytes_max: int, direct_bytes_min: int,
) -> None:  # fmt: skip
    directory = f"{root}/{spec.name}/g{GENERATION}/p{number}"
    made = not files.exists(directory)
    files.make_directory(directory)
    if made:
        for above in (directory, f"{root}/{spec.name}/g{GENERATION}", f"{root}/{spec.name}", root):
            files.sync_directory(above)
    manifest = Manifest(files, directory)
    found = recover(files, directory, manifest)
    epoch = 1 + max((segment_epoch(files, s.path) for s in found.segments[-1:]), default=0)
    manifest.rewrite(found.edits)
    names = Names(found.topic_names, found.publishers)
    segments = SegmentList(found.first_lsn)
    segments.files = found.segments
    if found.segments:
        segments.first_lsn = max(found.first_lsn, found.segments[0].base_lsn)
    writer = SegmentWriter(
        files, directory, stream=spec.name, generation=GENERATION, number=number, epoch=epoch, boot_id=boot_id,
        sync_groups=spec.durability == "disk", segment_bytes_max=spec.segment_bytes_max,
        segment_us_max=spec.segment_seconds_max * 1_000_000, names=names, manifest=manifest, random=random,
        direct_bytes_min=direct_bytes_min,
    )  # fmt: skip
    next_offsets = found.next_offsets if found.next_offsets else array("Q")
    store.partitions.append(
        Partition(
            files,
            directory,
            spec,
            len(store.partitions),
            number,
            GENERATION,
            writer,
            names,
            segments,
            found.next_lsn,
            next_offsets,
            max(found.last_ts, 0),
            hot_bytes_max,
        )
    )
    store.recovered.append(found)


def segment_epoch(files: Files, path: str) -> int:
    handle = files.open(path)
    try:
        return read_header(files, handle, path).epoch
    finally:
        files.close(handle)
