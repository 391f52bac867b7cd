"""A file system that forgets, for tests: `commitlog.files.Files` over a disk in memory whose power can be cut.

What it models, harsher than most real ones and never kinder:

- A write changes the page cache only. Readers see it at once. The device has it after `sync` of that file.
- Power loss: of each 512-byte sector written since the last sync, the device has the old or the new content, in any
  combination; a sector is never half written. The file's length is the synced one, or longer as far as any surviving
  sector reaches; what is inside it and was never written reads as zeros.
- A name (created, renamed, removed) that was not followed by `sync_directory` may be as before or as after, each
  change alone; a rename is one change. Syncing a file does not sync its name. What a lost directory held is gone.
- A failed write may have written any part of it, to the cache. A failed sync may have written any sectors, and marks
  all as clean: the next sync of the same file reports success without having written them. The cache keeps what was
  written until the power goes, so reading back proves nothing.
- A kill loses nothing but open files and locks.
- Errors are injected by call number, from a plan that can be replayed: `fail` maps the number of a call that changes
  something (from 0, in order, reads not counted) to its errno, and `broken` is an errno that every such call meets.

Not modelled: sectors that change without being written (tests flip bits with `damage`), and names cut in half.
Deterministic: there is no clock, and all chance comes from the `choose` that is handed in."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import NoReturn

SECTOR = 512
Choose = Callable[[int], int]  # a number from 0 to below n


class Disk:
    """One file's content: `cache` is what is read, `device` what a power loss leaves, `dirty` the sectors between."""

    __slots__ = ("cache", "device", "dirty")

    def __init__(self, content: bytes = b"") -> None:
        self.cache, self.device = bytearray(content), bytearray(content)
        self.dirty: set[int] = set()

    def write(self, position: int, data: bytes) -> None:
        if not data:
            return
        end = position + len(data)
        if len(self.cache) < end:
            self.cache.extend(bytes(end - len(self.cache)))
        self.cache[position:end] = data
        self.dirty.update(range(position // SECTOR, (end + SECTOR - 1) // SECTOR))

    def sync(self, sectors: set[int]) -> None:
        """Bring these sectors to the device; the others of the dirty ones stay away from it, and count as clean."""
        if sectors == self.dirty:
            self.device.extend(bytes(len(self.cache) - len(self.device)))
        for sector in sectors:
            at, end = sector * SECTOR, min((sector + 1) * SECTOR, len(self.cache))
            if len(self.device) < end:
                self.device.extend(bytes(end - len(self.device)))
            self.device[at:end] = self.cache[at:end]
        self.dirty.clear()


class Change:
    """A change of names that is not on the device: `after` holds the new ones, None where a name went."""

    __slots__ = ("after",)

    def __init__(self, after: dict[str, Disk | Directory | None]) -> None:
        self.after = after


class Directory:
    """names: as they are; device: as a power loss leaves them, when it takes every one of `changes`."""

    __slots__ = ("changes", "device", "names")

    def __init__(self) -> None:
        self.names: dict[str, Disk | Directory] = {}
        self.device: dict[str, Disk | Directory] = {}
        self.changes: list[Change] = []

    def change(self, after: dict[str, Disk | Directory | None]) -> None:
        self.changes.append(Change(after))
        apply(self.names, after)

    def sync(self) -> None:
        self.device = dict(self.names)
        self.changes.clear()


def apply(names: dict[str, Disk | Directory], after: dict[str, Disk | Directory | None]) -> None:
    for name, node in after.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class SimulatedFiles:
    """The files of one process on a simulated machine. calls: what was done, in order: (name of the call, path)."""

    def __init__(self, root: Directory | None = None, *, choose: Choose = lambda n: 0) -> None:
        """choose: decides what a failed write or sync has done all the same."""
        self.root = root if root is not None else Directory()
        self.choose = choose
        self.calls: list[tuple[str, str]] = []
        self.fail: dict[int, int] = {}
        self.broken: int | None = None
        self._open: dict[int, tuple[Disk, str]] = {}
        self._locked: set[str] = set()
        self._next_handle = 3

    # What befalls the machine

    def after_kill(self) -> SimulatedFiles:
        """The same machine, without the process: nothing of the cache is lost."""
        return SimulatedFiles(self.root, choose=self.choose)

    def beside(self) -> SimulatedFiles:
        """Another process on the same machine."""
        other = SimulatedFiles(self.root, choose=self.choose)
        other._locked = self._locked
        return other

    def after_power_loss(self, choose: Choose) -> SimulatedFiles:
        """Another start of the machine, with what the device has. choose: decides what survives; 0 loses it."""
        survivors: dict[int, Disk] = {}
        return SimulatedFiles(self._survivor(self.root, choose, survivors), choose=self.choose)

    def _survivor(self, directory: Directory, choose: Choose, disks: dict[int, Disk]) -> Directory:
        names = dict(directory.device)
        for change in directory.changes:
            if choose(2):
                apply(names, change.after)
        found = Directory()
        for name, node in sorted(names.items()):
            if isinstance(node, Directory):
                found.names[name] = self._survivor(node, choose, disks)
            else:
                if id(node) not in disks:
                    disks[id(node)] = survived(node, choose)
                found.names[name] = disks[id(node)]
        found.sync()
        return found

    def damage(self, path: str, position: int, bits: int = 1) -> None:
        """Flip bits of a byte, in cache and device: the disk did it."""
        disk = self._disk(path)
        disk.cache[position] ^= bits
        if position < len(disk.device):
            disk.device[position] ^= bits

    def content(self, path: str) -> bytes:
        return bytes(self._disk(path).cache)

    def put(self, path: str, content: bytes) -> None:
        """A file that is there, on the device too, whoever wrote it."""
        directory, name = self._above(path)
        directory.names[name] = directory.device[name] = Disk(content)

    # Faults

    def _call(self, name: str, path: str) -> int | None:
        """Count a call that changes something; the errno that it meets."""
        self.calls.append((name, path))
        if self.broken is not None:
            return self.broken
        return self.fail.get(len(self.calls) - 1)

    # commitlog.files.Files

    def create(self, path: str) -> int:
        meet(self._call("create", path), path)
        directory, name = self._above(path)
        if name in directory.names:
            refuse(errno.EEXIST, path)
        disk = Disk()
        directory.change({name: disk})
        return self._handle(disk, path)

    def open(self, path: str, *, write: bool = False) -> int:
        return self._handle(self._disk(path), path)

    def close(self, handle: int) -> None:
        _, path = self._of(handle)
        del self._open[handle]
        self._locked.discard(path)

    def write(self, handle: int, position: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        disk, path = self._of(handle)
        data = b"".join(bytes(buffer) for buffer in buffers)
        fault = self._call("write", path)
        if fault is None:
            disk.write(position, data)
        else:
            disk.write(position, data[: self.choose(len(data) + 1)] if fault != errno.EROFS else b"")
            refuse(fault, path)

    def write_direct(self, handle: int, path: str, position: int, data: memoryview) -> None:
        self.write(handle, position, [data])

    def read(self, handle: int, position: int, size: int) -> bytes:
        return bytes(self._of(handle)[0].cache[position : position + size])

    def sync(self, handle: int) -> None:
        disk, path = self._of(handle)
        fault = self._call("sync", path)
        if fault is None:
            disk.sync(set(disk.dirty))
        else:
            disk.sync({sector for sector in sorted(disk.dirty) if self.choose(2)})
            refuse(fault, path)

    def sync_directory(self, path: str) -> None:
        meet(self._call("sync_directory", path), path)
        self._directory(path).sync()

    def size(self, path: str) -> int:
        return len(self._disk(path).cache)

    def exists(self, path: str) -> bool:
        try:
            self._node(path)
        except OSError:
            return False
        return True

    def names(self, path: str) -> list[str]:
        return sorted(self._directory(path).names)

    def make_directory(self, path: str) -> None:
        if self.exists(path):
            self._directory(path)
            return
        parent = path.rpartition("/")[0]
        if parent:
            self.make_directory(parent)
        meet(self._call("make_directory", path), path)
        directory, name = self._above(path)
        directory.change({name: Directory()})

    def rename(self, old: str, new: str) -> None:
        meet(self._call("rename", new), new)
        (source, old_name), (target, new_name) = self._above(old), self._above(new)
        node = self._node(old)
        if source is not target:
            raise NotImplementedError("the log renames inside a directory")
        source.change({old_name: None, new_name: node})

    def remove(self, path: str) -> None:
        self._disk(path)
        meet(self._call("remove", path), path)
        directory, name = self._above(path)
        directory.change({name: None})

    def lock(self, path: str, text: str) -> int:
        if path in self._locked:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), path)
        if not self.exists(path):
            meet(self._call("create", path), path)
            directory, name = self._above(path)
            directory.change({name: Disk()})
        disk = self._disk(path)
        meet(self._call("write", path), path)
        disk.cache[:] = b""
        disk.write(0, text.encode())
        self._locked.add(path)
        return self._handle(disk, path)

    # Names

    def _node(self, path: str) -> Disk | Directory:
        node: Disk | Directory = self.root
        for name in path.split("/"):
            if name in ("", "."):
                continue
            if not isinstance(node, Directory):
                refuse(errno.ENOTDIR, path)
            if name not in node.names:
                refuse(errno.ENOENT, path)
            node = node.names[name]
        return node

    def _disk(self, path: str) -> Disk:
        node = self._node(path)
        return node if isinstance(node, Disk) else refuse(errno.EISDIR, path)

    def _directory(self, path: str) -> Directory:
        node = self._node(path)
        return node if isinstance(node, Directory) else refuse(errno.ENOTDIR, path)

    def _above(self, path: str) -> tuple[Directory, str]:
        above, _, name = path.rpartition("/")
        return self._directory(above), name

    def _handle(self, disk: Disk, path: str) -> int:
        self._next_handle += 1
        self._open[self._next_handle] = disk, path
        return self._next_handle

    def _of(self, handle: int) -> tuple[Disk, str]:
        return self._open[handle] if handle in self._open else refuse(errno.EBADF, str(handle))


def survived(disk: Disk, choose: Choose) -> Disk:
    """What the device has after a power loss."""
    how = choose(4)
    content = bytearray(disk.device)
    for sector in sorted(disk.dirty) if how else []:
        if how > 1 and not choose(2):
            continue
        at, end = sector * SECTOR, min((sector + 1) * SECTOR, len(disk.cache))
        content.extend(bytes(max(0, end - len(content))))
        content[at:end] = disk.cache[at:end]
    return Disk(bytes(content))


def meet(fault: int | None, path: str) -> None:
    if fault is not None:
        refuse(fault, path)


def refuse(number: int, path: str) -> NoReturn:
    raise OSError(number, os.strerror(number), path)
