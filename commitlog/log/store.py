"""A data directory: locked by one broker at a time, with the partitions of every stream. docs/reference/log-format.md.

The time is an argument."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

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
from commitlog.read.cold_reads import ColdReadTask
from commitlog.streams import SYNCED, Matches, StreamSpec, partition_of, stream_of
from commitlog.write.retention import remove_segments
from commitlog.write.segment_writer import SegmentOptions, SegmentWriter

if TYPE_CHECKING:  # a broker alone knows of no tail
    from commitlog.format.known_tail import KnownTail

FORMAT = "rumq 1"
GENERATION = 1
NOTHING_KNOWN: Mapping[str, KnownTail] = {}
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
        self._first_of: list[int] = []

    @property
    def files(self) -> Files:
        return self._files

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
            for place in segments.cache.places(self._files, segment):
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
    files: Files, root: str, streams: Sequence[StreamSpec], *, matches: Matches, now_us: int,
    boot_id: bytes = bytes(16), random: Callable[[int], bytes] = os.urandom, hot_bytes_max: int = 64 << 20,
    holder: str = "", direct_bytes_min: int = 1 << 17, internal: StreamSpec | None = None, internal_number: int = 0,
    internal_generation: int = GENERATION,
    elsewhere: Callable[[StreamSpec, int, int], PartitionReader | None] | None = None, lock: int | None = None,
    volatile: Callable[[int], PartitionReader] | None = None, epoch: int = 0,
    tails: Mapping[str, KnownTail] = NOTHING_KNOWN,
) -> Store:  # fmt: skip
    """Open or create a data directory, and recover every partition.

    internal: a stream for the owner's own records, beside those that topics have; internal_number: its partition of
    internal_generation
    elsewhere: (stream, index, number) -> the stand-in of a partition that another process owns, None for our own
    lock: of a directory that is locked already
    volatile: index -> a partition without files and topics of a stream, behind all others
    epoch: segments carry at least this one, of the leader of a cluster's shard
    tails: by directory, what this process knows of the last segments (`recovery.recover`)
    holder: the text of LOCK: "pid <number>\n" tells other processes whether a broker still runs
    raises: DirectoryInUse, FormatTooNew, NotWritable
    """
    taken = None
    opened = partial(
        open_partition, files, root, now_us=now_us, boot_id=boot_id, random=random, direct_bytes_min=direct_bytes_min,
        epoch=epoch, tails=tails,
    )  # fmt: skip
    try:
        if lock is None:
            lock = taken = hold(files, root, holder)
            check_format(files, root)
        store = Store(files, root, lock, list(streams), matches)
        for spec in streams:
            if len(spec.name.encode()) > STREAM_BYTES_MAX:
                raise StoreError(root, f"the name of stream {spec.name} is longer than {STREAM_BYTES_MAX} bytes")
            store._first_of.append(len(store.partitions))
            for number in range(spec.partitions):
                away = elsewhere(spec, len(store.partitions), number) if elsewhere is not None else None
                if away is not None:
                    store.partitions.append(away)
                    continue
                identity = PartitionId(spec, len(store.partitions), number)
                partition, found = opened(identity, hot_bytes_max=hot_bytes_max)
                store.partitions.append(partition)
                store.own.append(partition)
                store.recovered.append(found)
        if volatile is not None:
            store.partitions.append(volatile(len(store.partitions)))
        if internal is not None:
            identity = PartitionId(internal, len(store.partitions), internal_number, internal_generation)
            store.internal, store.internal_recovered = opened(identity)
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


def open_partition(
    files: Files, root: str, identity: PartitionId, *, now_us: int, boot_id: bytes = bytes(16),
    random: Callable[[int], bytes] = os.urandom, hot_bytes_max: int = 0, direct_bytes_min: int = 1 << 17,
    epoch: int = 0, tails: Mapping[str, KnownTail] = NOTHING_KNOWN,
) -> tuple[Partition, Recovered]:  # fmt: skip
    """One partition, recovered. raises: OSError, StoreError"""
    spec, number, generation = identity.spec, identity.number, identity.generation
    directory = f"{root}/{spec.name}/g{generation}/p{number}"
    make_durable_directory(files, directory, known=root)
    manifest = Manifest(files, directory)
    found = recover(files, directory, manifest, spec.name, number, now_us, tails.get(directory))
    manifest.rewrite(found.edits)
    try:
        remove_segments(files, found.leftover)
        for path, stop, size in found.longer:
            release(files, path, stop, size)
    except OSError:
        pass  # they are superseded, and zeros count for nothing; the next start retries
    # After the recovery everything in the segments is on disk.
    dictionary = Dictionary(
        files, directory, found.topic_names, found.publishers, found.next_offsets, found.next_lsn, found.snapshot_lsn
    )
    segments = SegmentList(found.first_lsn, found.segments, dictionary)
    segments.jumps = found.jumps
    options = SegmentOptions(
        spec.name, generation, number, max(found.epoch, epoch), boot_id, spec.durability in SYNCED,
        spec.segment_bytes_max, spec.segment_seconds_max * 1_000_000, direct_bytes_min,
    )  # fmt: skip
    names = NumberedNames(found.topic_names, found.publishers)
    writer = SegmentWriter(files, directory, options, names=names, manifest=manifest, random=random)
    return Partition(files, directory, identity, writer, segments, found, hot_bytes_max), found
