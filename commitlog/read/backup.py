"""A complete copy of a data directory, made while a broker writes. docs/guides/operating.md, "Backup".

Finished segments never change, so each is linked or copied once; of the active segment the copy has a whole prefix,
which recovery reads like the tail after a kill. The broker's own records (`_state`) are copied first: then no session
is ahead of its messages. Takes no lock in the source, and writes nothing there."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from typing import NamedTuple

from commitlog.disk.files import (
    DIRECTORY_MODE,
    Files,
    RealFiles,
    make_private_directory,
    private_file,
    replace_file,
)
from commitlog.disk.preallocation import PAGE, data_end, padded
from commitlog.disk.shard_count import NAME as ROSTER
from commitlog.errors import StoreError
from commitlog.format.manifest import NAME as MANIFEST
from commitlog.read.inventory import NAME as INVENTORY
from commitlog.read.log_reader import LogReader
from commitlog.read.partition_view import PartitionView

LABEL = "BACKUP"  # written last: a backup without it is unfinished
RESTORED = "RESTORED"  # the label of the backup that a data directory was made from, until its first start
OFFSETS = ("kafka-commits",)  # of the servers beside the broker: first, so that none is ahead of the log's copy
COPY_BYTES = 1 << 20
TRIES_MAX = 5  # retention may take a segment while it is being copied


class BackupContent(NamedTuple):
    """The content of a backup. copied, linked, kept: files; kept: they were there from an earlier backup."""

    partitions: dict[str, int]
    copied: int
    linked: int
    kept: int
    bytes: int


class Backup:
    """Copies `source` to `target`; into an earlier backup of the same log only new data."""

    def __init__(
        self,
        source: str,
        target: str,
        files: Files | None = None,
        advance: Callable[[int], None] = lambda _: None,
    ) -> None:
        """advance: told of bytes that were copied"""
        self._advance = advance
        self._files = files or RealFiles()
        self.source, self.target = source, target
        self._copied = self._linked = self._kept = self._bytes = 0

    def run(self, now: str) -> BackupContent:
        """now: the time to put on the label. raises: OSError, StoreError, FileNotFoundError for no data directory"""
        views = LogReader(self._files, self.source).partitions(internal=True)
        self._check_target()
        make_private_directory(self.target)
        label = f"{self.target}/{LABEL}"
        if os.path.exists(label):
            os.unlink(label)
            sync_directory(self.target)
        for name in OFFSETS:
            if os.path.exists(f"{self.source}/{name}"):
                self._copy(f"{self.source}/{name}", f"{self.target}/{name}")
        ends = {}
        for view in sorted(views, key=lambda v: (not v.stream.startswith("_"), v.name)):
            ends[view.name] = self._partition(view)
        for name in (ROSTER, INVENTORY):
            if os.path.exists(f"{self.source}/{name}"):
                self._copy(f"{self.source}/{name}", f"{self.target}/{name}")
        self._copy(f"{self.source}/FORMAT", f"{self.target}/FORMAT")
        done = BackupContent(ends, self._copied, self._linked, self._kept, self._bytes)
        said = {"made": now, "next_lsn": ends}
        replace_file(RealFiles(), label, json.dumps(said, indent=1).encode() + b"\n")
        return done

    def _check_target(self) -> None:
        if os.path.exists(f"{self.target}/LOCK"):
            raise StoreError(self.target, "it is a broker's data directory, not a backup: name another")
        if os.path.isdir(self.target) and os.listdir(self.target) and not os.path.exists(f"{self.target}/FORMAT"):
            known = {LABEL, ROSTER, INVENTORY, *OFFSETS, *self._streams()}
            if strangers := sorted(set(os.listdir(self.target)) - known):
                raise StoreError(self.target, f"it holds {strangers[0]!r}, which is no backup: name an empty one")

    def _streams(self) -> list[str]:
        return [name for name in os.listdir(self.source) if os.path.isdir(f"{self.source}/{name}")]

    def _partition(self, view: PartitionView) -> int:
        there = self.target + view.directory.removeprefix(self.source)
        make_private_directory(there)
        narrow(self.target, there)
        for _ in range(TRIES_MAX):
            try:
                self._segments(view.directory, there)
                break
            except FileNotFoundError:
                continue  # retention removed one: begin with the new manifest
        else:
            raise StoreError(view.directory, "segments go faster than they can be copied: make retention longer")
        above = there
        while above != self.target:
            sync_directory(above)
            above = os.path.dirname(above)
        return PartitionView(self._files, there, view.stream, view.generation, view.number, held=False).end_lsn

    def _segments(self, here: str, there: str) -> None:
        # The manifest first: a segment that it does not know yet is adopted, one that it knows must be there.
        self._copy(f"{here}/{MANIFEST}", f"{there}/{MANIFEST}")
        names = set(os.listdir(here))
        for name in sorted(names):
            if name.endswith((".seg", ".idx")):
                finished = f"{name.removesuffix('.seg')}.idx" in names or name.endswith(".idx")
                self._file(f"{here}/{name}", f"{there}/{name}", finished=finished)
        if "topics.snap" in names:
            self._copy(f"{here}/topics.snap", f"{there}/topics.snap")
        for name in sorted(set(os.listdir(there)) - names):
            os.unlink(f"{there}/{name}")

    def _file(self, here: str, there: str, *, finished: bool) -> None:
        """finished: it will not grow any more"""
        if os.path.exists(there):
            if finished and is_same(here, there):
                self._kept += 1
                return
            os.unlink(there)
        if finished:
            try:
                os.link(here, there)
                self._linked += 1
                return
            except OSError as fault:
                if fault.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
                    raise
        self._copy(here, there, None if finished else self._data_end(here))

    def _data_end(self, path: str) -> int:
        """Where the data of a segment ends now. Beyond it a broker is writing to preallocated space: what is read there
        may be older than what is read behind it."""
        handle = self._files.open(path)
        try:
            return padded(data_end(self._files, handle, 0, self._files.size(path)))
        finally:
            self._files.close(handle)

    def _copy(self, here: str, there: str, size: int | None = None) -> None:
        """Create a file atomically, synced. size: of its first so many bytes; None: all"""
        with open(here, "rb") as source, private_file(f"{there}.new") as copy:
            left = COPY_BYTES if size is None else min(size, COPY_BYTES)
            while left and (piece := source.read(left)):
                copy.write(piece)
                self._bytes += len(piece)
                self._advance(len(piece))
                if size is not None:
                    size -= len(piece)
                    left = min(size, COPY_BYTES)
            copy.flush()
            os.fsync(copy.fileno())
        os.replace(f"{there}.new", there)
        self._copied += 1


def restore(backup: str, data: str, advance: Callable[[int], None] = lambda _: None) -> int:
    """Make a data directory from a backup; returns how many files. The backup stays as it is.

    advance: told of bytes that were copied

    raises: StoreError when the backup is none, or `data` is not empty; OSError"""
    if not os.path.exists(f"{backup}/{LABEL}"):
        raise StoreError(backup, "no finished backup (it has no BACKUP file): run `rumqd backup` again")
    if os.path.isdir(data) and os.listdir(data):
        raise StoreError(data, "it is not empty: restore into a new directory")
    count = 0
    for folder, _, names in sorted(os.walk(backup)):
        there = data + folder.removeprefix(backup)
        make_private_directory(there)
        for name in sorted(names):
            if name in (LABEL, "FORMAT"):
                continue
            copy_synced(f"{folder}/{name}", f"{there}/{name}", advance)
            count += 1
        sync_directory(there)
    copy_synced(f"{backup}/{LABEL}", f"{data}/{RESTORED}")
    # Last: without it the directory is none, should this be interrupted.
    copy_synced(f"{backup}/FORMAT", f"{data}/FORMAT")
    sync_directory(data)
    sync_directory(os.path.dirname(os.path.abspath(data)))
    return count + 1


def take_restored(data: str) -> dict[str, int]:
    """The next lsn of each partition in the backup that a directory was restored from, once; {} for any other.

    Such an end is that of a copy, not of a broker that was killed."""
    path = f"{data}/{RESTORED}"
    try:
        with open(path, "rb") as file:
            ends = dict(json.load(file)["next_lsn"])
        os.unlink(path)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
    return ends


def copy_synced(here: str, there: str, advance: Callable[[int], None] = lambda _: None) -> None:
    # Never a link: the broker that opens the copy may sync it and append to it.
    with open(here, "rb") as source, private_file(there) as copy:
        while piece := source.read(COPY_BYTES):
            copy.write(piece)
            advance(len(piece))
        copy.flush()
        os.fsync(copy.fileno())


def is_same(here: str, there: str) -> bool:
    """Whether a copy has all of a finished file. In its last page there may be more now: the size does not tell."""
    size = os.path.getsize(here)
    if os.path.getsize(there) != size:
        return False
    ends = []
    for path in (here, there):
        with open(path, "rb") as file:
            file.seek(max(0, size - PAGE))
            ends.append(file.read())
    return ends[0] == ends[1]


def narrow(target: str, directory: str) -> None:
    """Close a directory of a backup, and those above it below the target, to others: an older rumq left them open."""
    while directory != target:
        os.chmod(directory, DIRECTORY_MODE)
        directory = os.path.dirname(directory)


def sync_directory(path: str) -> None:
    RealFiles().sync_directory(path)
