"""A simulated file system for tests: `commitlog.disk.files.Files` over a disk in memory, with power loss.

Its fault model, at least as harsh as real disks:

- A write changes the page cache only. Readers see it at once. The device has it after `sync` of that file.
- Power loss: of each sector written since the last sync, the device has the old or the new content, in any
  combination; a sector is never half written. A sector is 512 bytes, or 4,096 where `sector_bytes` says so. In space
  that was preallocated the old content is the zeros that were synced, or what was there before they were. The
  file's length is the synced one, or longer as far as any surviving sector reaches; what is inside it and was never
  written reads as zeros.
- A truncation that was not followed by `sync` of that file may have happened or not. It gives its blocks back at once.
- A name (created, renamed, removed) that was not followed by `sync_directory` may be as before or as after, each
  change alone; a rename is one change. Syncing a file does not sync its name. The content of a lost directory is lost.
- A failed write may have written any part of it, to the cache. A failed sync may have written any sectors, and marks
  all as clean: the next sync of the same file reports success without having written them. The cache keeps what was
  written until the power goes, so reading back proves nothing.
- A kill loses nothing but open files and locks.
- Errors are injected by call number, from a plan that can be replayed: `fail` maps the number of a call that changes
  something (from 0, in order) to its errno, and `broken` is an errno that every such call meets whose path begins
  with `broken_under`. Read-only calls (open, read, size, names) are counted separately, in `looks`, and fail by
  `fail_looks`.
- The disk has `room_bytes` for files, in whole blocks of 4,096; None: unlimited. A write without enough room writes
  as much as fits and fails with ENOSPC. Changes inside a file's blocks need none. Removing a file frees its blocks at
  once. Names need no room.

Not modelled: sectors that change without being written (tests flip bits with `damage`), and names cut in half.
Deterministic: there is no clock, and all random choices come from the argument `choose`."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import NoReturn

from commitlog.disk.space import VolumeSpace
from commitlog.testing.simulated_device import (
    BLOCK,
    SECTOR,
    Choose,
    Directory,
    SimulatedDisk,
    apply,
    blocks,
    survived,
    taken,
    torn_together,
)


class SimulatedFiles:
    """The files of one process on a simulated machine.

    calls: changing calls, in order: (name of the call, path); looks: read-only calls, likewise
    before_call: called before each changing call, where a test may cut the power"""

    def __init__(
        self, root: Directory | None = None, *, choose: Choose = lambda n: 0, sector_bytes: int = SECTOR
    ) -> None:
        """choose: decides the partial effects of a failed write or sync."""
        self.sector_bytes = sector_bytes
        self.room_bytes: int | None = None
        self.before_call: Callable[[], None] | None = None
        self.looks: list[tuple[str, str]] = []
        self.fail_looks: dict[int, int] = {}
        self.root = root if root is not None else Directory()
        self.choose = choose
        self.calls: list[tuple[str, str]] = []
        self.fail: dict[int, int] = {}
        self.broken: int | None = None
        self.broken_under = ""
        self._open: dict[int, tuple[SimulatedDisk, str]] = {}
        self._locked: set[str] = set()
        self._next_handle = 3

    # Faults of the machine

    def after_kill(self) -> SimulatedFiles:
        """The same machine, without the process: nothing of the cache is lost."""
        return self._with(self.root)

    def beside(self) -> SimulatedFiles:
        """Another process on the same machine."""
        other = self._with(self.root)
        other._locked = self._locked
        return other

    def after_power_loss(self, choose: Choose) -> SimulatedFiles:
        """A restart of the machine with the device's content. choose: decides which changes survive; 0 loses one."""
        survivors: dict[int, SimulatedDisk] = {}
        return self._with(self._survivor(self.root, choose, survivors))

    def at_stake(self) -> int:
        """Number of independent changes that a power loss may lose now: sectors, and changes of names."""
        disks: dict[int, SimulatedDisk] = {}
        changes = self._at_stake(self.root, disks)
        changes += sum(disk.cut is not None for disk in disks.values())
        return changes + sum(len(torn_together(disk, self.sector_bytes)) for disk in disks.values())

    def _at_stake(self, directory: Directory, disks: dict[int, SimulatedDisk]) -> int:
        changes = len(directory.changes)
        nodes = [*directory.device.values(), *directory.names.values()]
        nodes += [node for change in directory.changes for node in change.after.values() if node is not None]
        for node in {id(node): node for node in nodes}.values():
            if isinstance(node, SimulatedDisk):
                disks[id(node)] = node
            else:
                changes += self._at_stake(node, disks)
        return changes

    def _with(self, root: Directory) -> SimulatedFiles:
        other = SimulatedFiles(root, choose=self.choose, sector_bytes=self.sector_bytes)
        other.room_bytes = self.room_bytes
        return other

    def _survivor(self, directory: Directory, choose: Choose, disks: dict[int, SimulatedDisk]) -> Directory:
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
                    disks[id(node)] = survived(node, choose, self.sector_bytes)
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
        """Put a file on cache and device, without a call."""
        directory, name = self._above(path)
        directory.names[name] = directory.device[name] = SimulatedDisk(content)

    # Faults

    def _look(self, name: str, path: str) -> None:
        self.looks.append((name, path))
        meet(self.fail_looks.get(len(self.looks) - 1), path)

    def _call(self, name: str, path: str) -> int | None:
        """Count a call that changes something; the errno that it meets."""
        if self.before_call is not None:
            self.before_call()
        self.calls.append((name, path))
        if self.broken is not None and path.startswith(self.broken_under):
            return self.broken
        return self.fail.get(len(self.calls) - 1)

    # commitlog.disk.files.Files

    def create(self, path: str) -> int:
        meet(self._call("create", path), path)
        directory, name = self._above(path)
        if name in directory.names:
            refuse(errno.EEXIST, path)
        disk = SimulatedDisk()
        directory.change({name: disk})
        return self._handle(disk, path)

    def open(self, path: str, *, write: bool = False) -> int:
        self._look("open", path)
        return self._handle(self._disk(path), path)

    def close(self, handle: int) -> None:
        _, path = self._of(handle)
        del self._open[handle]
        self._locked.discard(path)

    def write(self, handle: int, position: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        disk, path = self._of(handle)
        data = b"".join(bytes(buffer) for buffer in buffers)
        fault = self._call("write", path)
        fits = self._fitting(disk, position, len(data))
        if fault is None and fits < len(data):
            disk.write(position, data[:fits])
            refuse(errno.ENOSPC, path)
        if fault is None:
            disk.write(position, data)
        else:
            disk.write(position, data[: self.choose(len(data) + 1)] if fault != errno.EROFS else b"")
            refuse(fault, path)

    def _fitting(self, disk: SimulatedDisk, position: int, size: int) -> int:
        """How many of `size` bytes at `position` there is room for."""
        if self.room_bytes is None:
            return size
        room = blocks(len(disk.cache)) + max(0, self.free_bytes("")) // BLOCK * BLOCK
        return max(0, min(size, room - position))

    def write_direct(self, handle: int, path: str, position: int, data: memoryview) -> None:
        self.write(handle, position, [data])

    def truncate(self, handle: int, size: int) -> None:
        disk, path = self._of(handle)
        meet(self._call("truncate", path), path)
        disk.truncate(size)

    def read(self, handle: int, position: int, size: int) -> bytes:
        disk, path = self._of(handle)
        self._look("read", path)
        return bytes(disk.cache[position : position + size])

    def sync(self, handle: int) -> None:
        disk, path = self._of(handle)
        fault = self._call("sync", path)
        if fault is None:
            disk.sync(set(disk.dirty))
        else:
            cuts = disk.cut is not None and bool(self.choose(2))
            disk.sync({sector for sector in sorted(disk.dirty) if self.choose(2)}, cuts=cuts)
            refuse(fault, path)

    def descriptor(self, handle: int) -> int:
        return -1

    def sync_directory(self, path: str) -> None:
        meet(self._call("sync_directory", path), path)
        self._directory(path).sync()

    def size(self, path: str) -> int:
        self._look("size", path)
        return len(self._disk(path).cache)

    def exists(self, path: str) -> bool:
        try:
            self._node(path)
        except OSError:
            return False
        return True

    def names(self, path: str) -> list[str]:
        self._look("names", path)
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

    def is_at(self, handle: int, path: str) -> bool:
        return self._of(handle)[0] is self._disk(path)

    def free_bytes(self, path: str) -> int:
        self._directory(path)
        return 1 << 50 if self.room_bytes is None else self.room_bytes - taken(self.root)

    def space(self, path: str) -> VolumeSpace:
        return VolumeSpace(self.free_bytes(path), 1 << 50 if self.room_bytes is None else self.room_bytes)

    def lock(self, path: str, text: str) -> int:
        if path in self._locked:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), path)
        if not self.exists(path):
            meet(self._call("create", path), path)
            directory, name = self._above(path)
            directory.change({name: SimulatedDisk()})
        disk = self._disk(path)
        meet(self._call("write", path), path)
        disk.cache[:] = b""
        disk.write(0, text.encode())
        self._locked.add(path)
        return self._handle(disk, path)

    # Names

    def _node(self, path: str) -> SimulatedDisk | Directory:
        node: SimulatedDisk | Directory = self.root
        for name in path.split("/"):
            if name in ("", "."):
                continue
            if not isinstance(node, Directory):
                refuse(errno.ENOTDIR, path)
            if name not in node.names:
                refuse(errno.ENOENT, path)
            node = node.names[name]
        return node

    def _disk(self, path: str) -> SimulatedDisk:
        node = self._node(path)
        return node if isinstance(node, SimulatedDisk) else refuse(errno.EISDIR, path)

    def _directory(self, path: str) -> Directory:
        node = self._node(path)
        return node if isinstance(node, Directory) else refuse(errno.ENOTDIR, path)

    def _above(self, path: str) -> tuple[Directory, str]:
        above, _, name = path.rpartition("/")
        return self._directory(above), name

    def _handle(self, disk: SimulatedDisk, path: str) -> int:
        self._next_handle += 1
        self._open[self._next_handle] = disk, path
        return self._next_handle

    def _of(self, handle: int) -> tuple[SimulatedDisk, str]:
        return self._open[handle] if handle in self._open else refuse(errno.EBADF, str(handle))


def meet(fault: int | None, path: str) -> None:
    if fault is not None:
        refuse(fault, path)


def refuse(number: int, path: str) -> NoReturn:
    raise OSError(number, os.strerror(number), path)
