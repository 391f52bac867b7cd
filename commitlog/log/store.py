"""A data directory: locked by one broker at a time, with the partitions of every stream. docs/reference/log-format.md.

The time is an argument."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from commitlog.chunk import Chunk, Gap
from commitlog.disk.files import Files, make_durable_directory, replace_file, whole_file
from commitlog.disk.os_errors import at_start
from commitlog.disk.preallocation import release
from commitlog.disk.space import VolumeSpace
from commitlog.errors import DirectoryInUse, FormatTooNew, LogFailure, NotWritable, StoreError
from commitlog.format.chunk_layout import NumberedNames
from commitlog.format.manifest import Manifest
from commitlog.index.dictionary import Dictionary
from commitlog.index.segments import SegmentList
from commitlog.log.partition import Partition
from commitlog.log.partition_types import PartitionId, PartitionReader
from commitlog.log.recovery import Recovered, recover
from commitlog.log.store_layout import OpenOptions, StoreLayout
from commitlog.read.cold_reads import ColdReadTask
from commitlog.read.opened_segment import opened
from commitlog.streams import SYNCED, Matches, StreamSpec, partition_of, stream_of
from commitlog.write.retention import remove_segments
from commitlog.write.segment_writer import SegmentOptions, SegmentWriter

FORMAT = "rumq 1"
STARTS_MAX = 64  # of earlier runs, that are told to other shards
STREAM_BYTES_MAX = 64  # room in a segment's header


class Store:
    """Every partition of every stream, in one list; each topic belongs to one."""

    def __init__(self, files: Files, root: str, lock: int, streams: list[StreamSpec], matches: Matches) -> None:
        self._files, self.root, self._lock = files, root, lock
        self._matches = matches
        self.streams = streams
        self.partitions: list[PartitionReader] = []
        self.own: list[Partition] = []  # of `partitions`, those that this process writes
        self.recovered: list[Recovered] = []
        self.internal: Partition | None = None
        self.internal_recovered: Recovered | None = None
        self._places: list[PartitionReader | FoundPartition] = []  # of `partitions`, before they are open
        self._first_of: list[int] = []

    @property
    def files(self) -> Files:
        return self._files

    def add_stream(self, spec: StreamSpec, layout: StoreLayout, options: OpenOptions) -> None:
        """Recover the partitions of the next stream that this process owns; others have stand-ins.

        raises: OSError, StoreError"""
        if len(spec.name.encode()) > STREAM_BYTES_MAX:
            raise StoreError(self.root, f"the name of stream {spec.name} is longer than {STREAM_BYTES_MAX} bytes")
        self._first_of.append(len(self._places))
        for number in range(spec.partitions):
            index = len(self._places)
            away = layout.elsewhere(spec, index, number) if layout.elsewhere is not None else None
            identity = PartitionId(spec, index, number)
            self._places.append(away or recover_partition(self._files, self.root, identity, options))

    def open(self, layout: StoreLayout, options: OpenOptions) -> None:
        """Open what was recovered, under one epoch: that of a run that wrote nothing of a partition is another one's
        there otherwise, though it may have shown records that it did not live to write. raises: OSError, StoreError"""
        found = [place for place in self._places if isinstance(place, FoundPartition)]
        internal = None
        if layout.internal is not None:
            index = len(self._places) + (layout.volatile is not None)
            identity = PartitionId(layout.internal, index, layout.internal_number, layout.internal_generation)
            internal = recover_partition(self._files, self.root, identity, options)
            found.append(internal)
        options = replace(options, epoch=max([options.epoch] + [each.recovered.epoch for each in found]))
        for place in self._places:
            if isinstance(place, FoundPartition):
                partition = begin_partition(self._files, place, options)
                self.own.append(partition)
                self.recovered.append(place.recovered)
                self.partitions.append(partition)
            else:
                self.partitions.append(place)
        if layout.volatile is not None:
            self.partitions.append(layout.volatile(len(self.partitions)))
        if internal is not None:
            self.internal = begin_partition(self._files, internal, replace(options, hot_bytes_max=0))
            self.internal_recovered = internal.recovered

    def place(self, topic: str) -> int:
        """Index of the partition of a topic."""
        stream = stream_of(topic, self.streams, self._matches)
        return self._first_of[stream] + partition_of(topic, self.streams[stream].partitions)

    def release_publishers(self, numbers: Sequence[int]) -> None:
        """A publisher publishes nothing more. numbers: its own, by partition, 0: none"""
        for partition, number in zip(self.partitions, numbers, strict=True):
            if number:
                partition.release_publisher(number)

    @property
    def newest_us(self) -> int:
        """The newest timestamp in any partition, µs since 1970; 0 when there is none."""
        return max((partition.last_ts for partition in self.own), default=0)

    def space(self) -> VolumeSpace:
        """How much can still be written to the disk of the directory, and how large it is.

        raises: OSError; FileNotFoundError also when another directory is in its place: writes would go to files without
        a path"""
        if not self._files.is_at(self._lock, f"{self.root}/LOCK"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.root)
        return self._files.space(self.root)

    def chunks_with(self, partition: Partition, flag: int, from_lsn: int = 0) -> Iterator[Chunk | Gap]:
        """Every chunk on disk with that flag (0: any) and a record from `from_lsn` on, in order. raises: OSError

        For the start, before anything is appended."""
        segments = partition.segments
        for segment in segments.files:
            if segment.end_lsn is not None and segment.end_lsn <= from_lsn:
                continue
            with opened(self._files, segment, segments.cache) as (_, _, places):
                pass
            for place in places:
                if place.next_lsn > from_lsn and (place.flags & flag or not flag):
                    read = ColdReadTask(
                        self._files,
                        [segment],
                        segments.cache,
                        place.base_lsn,
                        place.next_lsn,
                        1,
                        partition.publisher_names,
                    )
                    yield from read.run()

    def close(self) -> list[LogFailure]:
        """After everything is written: seal the active segments, save the dictionaries, unlock the directory.

        returns: failures to seal or save; no record is lost, the next start takes longer
        """
        failures = []
        internal = [self.internal] if self.internal is not None else []
        for partition in [*self.own, *internal]:
            try:
                partition.finish()
            except OSError as fault:
                failures.append(LogFailure(partition.directory, f"{fault}; the next start scans the log"))
            partition.writer.close()
        self._files.close(self._lock)
        return failures


def open_store(
    files: Files, root: str, layout: StoreLayout, options: OpenOptions, *, holder: str = "", lock: int | None = None
) -> Store:
    """Open or create a data directory, and recover every partition.

    holder: the text of LOCK: "pid <number>\n" tells other processes whether a broker still runs
    lock: of a directory that is locked already
    raises: DirectoryInUse, FormatTooNew, NotWritable
    """
    taken = None
    try:
        if lock is None:
            lock = taken = hold(files, root, holder)
            check_format(files, root)
        store = Store(files, root, lock, list(layout.streams), layout.matches)
        for spec in layout.streams:
            store.add_stream(spec, layout, options)
        store.open(layout, options)
    except (OSError, StoreError) as fault:
        if taken is not None:
            files.close(taken)
        raise fault if isinstance(fault, StoreError) else NotWritable(root, at_start(fault)) from fault
    return store


def hold(files: Files, root: str, holder: str) -> int:
    make_durable_directory(files, root)
    try:
        return files.lock(f"{root}/LOCK", holder)
    except BlockingIOError:
        said = whole_file(files, f"{root}/LOCK").decode(errors="replace").strip()
        who = f" ({said})" if said else ""
        raise DirectoryInUse(
            root, f"another broker holds it{who}: stop that one, or give this one another --data"
        ) from None


def check_format(files: Files, root: str) -> None:
    path = f"{root}/FORMAT"
    if not files.exists(path):
        replace_file(files, path, f"{FORMAT}\n".encode())
        return
    said = whole_file(files, path)[:64].decode(errors="replace").strip()
    if said != FORMAT:
        raise FormatTooNew(root, f"its format is {said!r}, this version reads {FORMAT!r}: use the rumq that wrote it")


class FoundPartition(NamedTuple):
    """One that was recovered, and is not open yet."""

    identity: PartitionId
    directory: str
    manifest: Manifest
    recovered: Recovered


def open_partition(files: Files, root: str, identity: PartitionId, options: OpenOptions) -> tuple[Partition, Recovered]:
    """One partition, recovered. raises: OSError, StoreError"""
    found = recover_partition(files, root, identity, options)
    return begin_partition(files, found, options), found.recovered


def recover_partition(files: Files, root: str, identity: PartitionId, options: OpenOptions) -> FoundPartition:
    """raises: OSError, StoreError"""
    spec, number, generation = identity.spec, identity.number, identity.generation
    directory = f"{root}/{spec.name}/g{generation}/p{number}"
    make_durable_directory(files, directory, known=root)
    manifest = Manifest(files, directory)
    found = recover(files, directory, manifest, spec.name, number, options.now_us, options.tails.get(directory))
    manifest.rewrite(found.edits)
    try:
        for path in found.unpacked:
            files.remove(path)
        remove_segments(files, found.leftover)
        for path, stop, size in found.longer:
            release(files, path, stop, size)
    except OSError:
        pass  # they are superseded, and zeros count for nothing; the next start retries
    return FoundPartition(identity, directory, manifest, found)


def begin_partition(files: Files, place: FoundPartition, options: OpenOptions) -> Partition:
    """Open a partition that was recovered. raises: OSError, StoreError"""
    identity, directory, manifest, found = place
    spec, number, generation = identity.spec, identity.number, identity.generation
    # After the recovery everything in the segments is on disk.
    dictionary = Dictionary(
        files, directory, found.topic_names, found.publishers, found.next_offsets, found.next_lsn, found.snapshot_lsn
    )
    segments = SegmentList(found.first_lsn, found.segments, dictionary)
    segments.jumps = found.jumps
    epoch = max(found.epoch, options.epoch)
    found.starts = [*found.starts[-STARTS_MAX:], (epoch, found.next_lsn)]
    segment_options = SegmentOptions(
        spec.name, generation, number, epoch, options.boot_id, spec.durability in SYNCED,
        spec.segment_bytes_max, spec.segment_seconds_max * 1_000_000, options.direct_bytes_min,
    )  # fmt: skip
    names = NumberedNames(found.topic_names, found.publishers)
    writer = SegmentWriter(files, directory, segment_options, names=names, manifest=manifest, random=options.random)
    return Partition(files, directory, identity, writer, segments, found, options.hot_bytes_max)
