"""A disk in memory that can lose power, for tests.

The fault model. A file is what the kernel shows (`cache`) and what the device has (`device`). A write changes the cache
and is remembered; `sync` brings every write of the file to the device. When the power goes, each remembered write has
reached the device or not, sector by sector (512 bytes), in any combination that the chooser picks. A created, renamed
or removed name is remembered by its directory; until the directory is synced each such change may be lost,
independently. What a kill loses is nothing: the cache survives. Any call can be made to fail with an error of the
operating system, by its number. Locks end with the power and with `killed`."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

SECTOR = 512
Choose = Callable[[], bool]


@dataclass
class Inode:
    """One file. unsynced: (position, bytes) of each write since the last sync, in order."""

    cache: bytearray = field(default_factory=bytearray)
    device: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes]] = field(default_factory=list)


def put(content: bytearray, position: int, data: bytes) -> None:
    if len(content) < position + len(data):
        content.extend(bytes(position + len(data) - len(content)))
    content[position : position + len(data)] = data


class SimulatedFiles:
    """`commitlog.files.Files` in memory."""

    def __init__(self) -> None:
        self._names: dict[str, Inode] = {}  # as the kernel shows them
        self._durable: dict[str, Inode] = {}  # as the device has them
        self._directories: set[str] = {""}
        self._handles: dict[int, Inode] = {}
        self._locks: dict[int, str] = {}
        self._next = 3
        self.calls = 0
        self.fail_at: dict[int, int] = {}  # number of a call that changes something -> errno

    def _call(self) -> None:
        self.calls += 1
        if self.calls in self.fail_at:
            number = self.fail_at[self.calls]
            raise OSError(number, os.strerror(number))

    def _handle(self, inode: Inode) -> int:
        self._next += 1
        self._handles[self._next] = inode
        return self._next

    def create(self, path: str) -> int:
        self._call()
        if path in self._names:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        self._names[path] = Inode()
        return self._handle(self._names[path])

    def open(self, path: str, *, write: bool = False) -> int:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        return self._handle(self._names[path])

    def close(self, handle: int) -> None:
        self._handles.pop(handle, None)
        self._locks.pop(handle, None)

    def write(self, handle: int, position: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        inode = self._handles[handle]
        data = b"".join(bytes(b) for b in buffers)
        try:
            self._call()
        except OSError:
            # A write that fails may have written something.
            put(inode.cache, position, data[: len(data) // 2])
            inode.unsynced.append((position, data[: len(data) // 2]))
            raise
        put(inode.cache, position, data)
        inode.unsynced.append((position, data))

    def write_direct(self, handle: int, path: str, position: int, data: memoryview) -> None:
        self.write(handle, position, [data])

    def read(self, handle: int, position: int, size: int) -> bytes:
        return bytes(self._handles[handle].cache[position : position + size])

    def sync(self, handle: int) -> None:
        inode = self._handles[handle]
        try:
            self._call()
        except OSError:
            # As kernels do: the pages count as clean now, though the device has not got them.
            inode.unsynced.clear()
            raise
        inode.device[:] = inode.cache
        inode.unsynced.clear()

    def sync_directory(self, path: str) -> None:
        self._call()
        prefix = path.rstrip("/") + "/"
        for name in set(self._names) | set(self._durable):
            if name.startswith(prefix) and "/" not in name[len(prefix) :]:
                if name in self._names:
                    self._durable[name] = self._names[name]
                else:
                    self._durable.pop(name, None)

    def size(self, path: str) -> int:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        return len(self._names[path].cache)

    def exists(self, path: str) -> bool:
        return path in self._names or path in self._directories

    def names(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        everything = [*self._names, *self._directories]
        return sorted(
            {n[len(prefix) :].partition("/")[0] for n in everything if n.startswith(prefix) and n != prefix}
        )

    def make_directory(self, path: str) -> None:
        parts = path.split("/")
        for n in range(1, len(parts) + 1):
            self._directories.add("/".join(parts[:n]))

    def rename(self, old: str, new: str) -> None:
        self._call()
        self._names[new] = self._names.pop(old)

    def remove(self, path: str) -> None:
        self._call()
        del self._names[path]

    def lock(self, path: str, text: str) -> int:
        if path in self._locks.values():
            raise BlockingIOError(errno.EWOULDBLOCK, "held", path)
        inode = self._names.setdefault(path, Inode())
        inode.cache[:] = text.encode()
        handle = self._handle(inode)
        self._locks[handle] = path
        return handle

    # Ends

    def killed(self) -> None:
        """The process died: nothing is lost but what it held."""
        self._handles.clear()
        self._locks.clear()

    def power_lost(self, choose: Choose) -> None:
        """The power went: `choose` says of each unsynced sector and directory entry whether it had arrived."""
        self.killed()
        for name in set(self._names) | set(self._durable):
            if self._names.get(name) is not self._durable.get(name) and choose():
                if name in self._names:
                    self._durable[name] = self._names[name]
                else:
                    self._durable.pop(name, None)
        for inode in {id(i): i for i in self._durable.values()}.values():
            for position, data in inode.unsynced:
                at = 0
                while at < len(data):
                    end = min(len(data), (position + at) // SECTOR * SECTOR + SECTOR - position)
                    if choose():
                        put(inode.device, position + at, data[at:end])
                    at = end
            inode.unsynced.clear()
            inode.cache = bytearray(inode.device)
        self._names = dict(self._durable)
