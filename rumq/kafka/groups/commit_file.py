"""The file of committed offsets: entries appended and synced before they are acknowledged, written anew when most of it
is out of date. docs/reference/kafka.md, "Where offsets are kept"

A record is its length, a CRC-32 and entries in MessagePack; one that is not whole ends the file, as nobody was told of
it. Blocks."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from struct import Struct

import msgspec
import trio

from commitlog.disk.files import Files, replace_file
from rumq.errors import DataDirectoryError
from rumq.kafka.groups.commit_entries import Commit, Entry, Forget

NAME = "kafka-commits"
FORMAT = b"rumq-kafka-commits-1\n"
HEAD = Struct("<II")
RECORD_BYTES_MAX = 64 << 20
COMPACT_BYTES_MIN, COMPACT_RATIO = 1 << 18, 4  # it is written anew when it is so large, and so many times its content
ENTRIES_A_RECORD = 200  # of a file that is written anew: less than what is looked through
LOOKED_THROUGH_BYTES = 1 << 20  # for a record behind what cannot be read
ENTRY_BEGINNINGS = tuple(  # its length, and the length of its tag and the tag
    msgspec.msgpack.encode(each)[:8] for each in (Commit("", "", "", 0, 0, 0, "", 0), Forget("", "", "", 0))
)
CHECKED_BYTES_MAX = 64 << 20  # of what may be such records: a file that was made up has as many as it is long


class CommitFile:
    """damage: what could not be read when it was opened; \"\": nothing"""

    def __init__(self, files: Files, directory: str) -> None:
        self._files, self._path = files, f"{directory}/{NAME}"
        self._handle = -1
        self._end = 0
        self._is_sound = False  # else it is written anew before the next entry
        self._live = 0  # bytes that it had when it was written anew
        self.damage = ""

    def read(self) -> list[Entry]:
        """All entries. raises: OSError, DataDirectoryError for a file of a newer version"""
        if not self._files.exists(self._path):
            return []
        handle = self._files.open(self._path)
        try:
            data = self._files.read(handle, 0, self._files.size(self._path))
        finally:
            self._files.close(handle)
        if not data.startswith(FORMAT):
            if FORMAT.startswith(data):
                return []  # it was being created, without the rename's care
            raise DataDirectoryError(self._path, f"it is no file of version {FORMAT!r}: use the rumq that wrote it")
        found, at = entries_of(data)
        if is_followed(data, at):
            replace_file(self._files, f"{self._path}.damaged", data)
            self.damage = (
                f"{self._path}: bytes {at} to {len(data)} cannot be read, offsets that were committed there are lost; "
                f"the file is kept as {NAME}.damaged"
            )
        return found

    def append(self, entries: Sequence[Entry], all_of: Callable[[], Iterable[Commit]]) -> None:
        """Add entries, durably. all_of: every commit there is, before these. raises: OSError: none of them counts"""
        record = record_of(entries)
        if not self._is_sound or self._end + len(record) > max(COMPACT_BYTES_MIN, COMPACT_RATIO * self._live):
            self._write_anew(all_of())
        self._is_sound = False
        self._files.write(self._handle, self._end, [record])
        self._files.sync(self._handle)
        self._end += len(record)
        self._is_sound = True

    async def keep(self, entries: Sequence[Entry], all_of: Callable[[], Iterable[Commit]]) -> None:
        """`append`, on a thread. It is not left half way: what is half written would be taken for the end."""
        await trio.to_thread.run_sync(self.append, entries, all_of)

    async def is_current(self) -> bool:
        return True  # the lock is this process's

    def close(self) -> None:
        if self._handle >= 0:
            self._files.close(self._handle)
            self._handle = -1

    def _write_anew(self, all_of: Iterable[Commit]) -> None:
        self.close()
        kept = list(all_of)
        records = [record_of(kept[at : at + ENTRIES_A_RECORD]) for at in range(0, len(kept), ENTRIES_A_RECORD)]
        replace_file(self._files, self._path, FORMAT, *records)
        self._handle = self._files.open(self._path, write=True)
        self._end = self._live = len(FORMAT) + sum(map(len, records))


def record_of(entries: Sequence[Entry]) -> bytes:
    body = msgspec.msgpack.encode(entries)
    return HEAD.pack(len(body), zlib.crc32(body)) + body


def entries_of(data: bytes) -> tuple[list[Entry], int]:
    """(entries of the whole records, where these end)"""
    found: list[Entry] = []
    at = len(FORMAT)
    while (record := maybe_record(data, at)) is not None:
        found += record[0]
        at = record[1]
    return found, at


def maybe_record(data: bytes, at: int) -> tuple[list[Entry], int] | None:
    """(its entries, where it ends)"""
    if at + HEAD.size > len(data):
        return None
    size, check = HEAD.unpack_from(data, at)
    if not is_size(data, at, size):
        return None
    body = memoryview(data)[at + HEAD.size : at + HEAD.size + size]
    if zlib.crc32(body) != check:
        return None
    try:
        return msgspec.msgpack.decode(body, type=list[Entry]), at + HEAD.size + size
    except msgspec.DecodeError:
        return None


def is_followed(data: bytes, at: int) -> bool:
    """Whether a whole record is behind what cannot be read: then it is damage, not the end of a write.

    So is what cannot be told at a bounded cost: the file is kept then. cost: linear"""
    if at + HEAD.size <= len(data):
        behind = at + HEAD.size + HEAD.unpack_from(data, at)[0]  # its head may be sound
        if maybe_record(data, behind) is not None:
            return True
    checked = 0
    for each in range(at + 1, min(len(data) - HEAD.size, at + LOOKED_THROUGH_BYTES)):
        size = HEAD.unpack_from(data, each)[0]
        if is_size(data, each, size) and begins_as_entries(data, each + HEAD.size):
            checked += size
            if checked > CHECKED_BYTES_MAX or maybe_record(data, each) is not None:
                return True
    return False


def begins_as_entries(data: bytes, at: int) -> bool:
    """Whether a body may begin there: a list, whose head has one, three or five bytes, and an entry of it."""
    return any(data.startswith(ENTRY_BEGINNINGS, at + head) for head in (1, 3, 5))


def is_size(data: bytes, at: int, size: int) -> bool:
    """Whether a record that begins there can be so long."""
    return 0 < size <= min(RECORD_BYTES_MAX, len(data) - at - HEAD.size)
