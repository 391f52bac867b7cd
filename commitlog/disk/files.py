"""The few file-system calls that the log uses, behind one interface, so that a simulated disk can stand in.

Every byte that the log reads or writes goes through here. Errors are the operating system's own `OSError`."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import BinaryIO, Protocol

from commitlog.disk.space import VolumeSpace

IOV_MAX = 1024
PAGE = 4096
DIRECT_BYTES_MIN, STEP_BYTES = 1 << 20, 1 << 18  # of a whole file; of its writes
# Read access to a log gives access to every message, so only its owner has it.
DIRECTORY_MODE, FILE_MODE = 0o700, 0o600


class Files(Protocol):
    """A file system. Handles are ints; paths are text, joined with "/"."""

    def create(self, path: str) -> int:
        """Create a file that must not exist, for reading and writing."""

    def open(self, path: str, *, write: bool = False) -> int: ...

    def close(self, handle: int) -> None: ...

    def write(self, handle: int, position: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        """Write all buffers consecutively, at `position`."""

    def write_direct(self, handle: int, path: str, position: int, data: memoryview) -> None:
        """Write `data` (page aligned in memory, in length and in the file) past the page cache, if that is possible.

        For large pieces: their bytes are copied once less, and fresh pages of the cache are what costs most."""

    def truncate(self, handle: int, size: int) -> None:
        """Cut a file off at `size`; durable with the next sync."""

    def read(self, handle: int, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer at the end of the file."""

    def sync(self, handle: int) -> None:
        """fdatasync: the data, and what is needed to find it, survive a power loss."""

    def descriptor(self, handle: int) -> int:
        """For a kernel that does what `write` and `sync` do; -1: only these can."""

    def sync_directory(self, path: str) -> None:
        """The directory's entries survive a power loss."""

    def size(self, path: str) -> int: ...

    def exists(self, path: str) -> bool:
        """Whether the entry exists; OSError if that is unknown: no access is not absence."""

    def names(self, path: str) -> list[str]:
        """The entries of a directory, sorted."""

    def make_directory(self, path: str) -> None:
        """Create a directory and those above it, for their owner only; no error if it exists."""

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None: ...

    def is_at(self, handle: int, path: str) -> bool:
        """Whether the file at a path is the one that is open; OSError when there is none."""

    def space(self, path: str) -> VolumeSpace:
        """Of the file system of a path: how much can still be written to it, and how large it is."""

    def lock(self, path: str, text: str) -> int:
        """Lock a file for this process, with `text` in it; BlockingIOError if another holds the lock."""


class RealFiles:
    """The machine's file system."""

    def __init__(self) -> None:
        # Handle -> a second one past the page cache, None: not possible.
        self._direct: dict[int, int | None] = {}

    def create(self, path: str) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)

    def open(self, path: str, *, write: bool = False) -> int:
        return os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC)

    def close(self, handle: int) -> None:
        second = self._direct.pop(handle, None)
        if second is not None:
            os.close(second)
        os.close(handle)

    def write_direct(self, handle: int, path: str, position: int, data: memoryview) -> None:
        if handle not in self._direct:
            try:
                self._direct[handle] = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
            except OSError:
                self._direct[handle] = None
        second = self._direct[handle]
        written = 0
        while second is not None and written < len(data):
            try:
                written += os.pwrite(second, data[written:], position + written)
            except OSError as fault:
                if fault.errno != errno.EINVAL:
                    raise
                # The file system opens files so, but does not write them so.
                os.close(second)
                second = self._direct[handle] = None
        if written < len(data):
            self.write(handle, position + written, [data[written:]])

    def write(self, handle: int, position: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        if len(buffers) == 1 and os.pwrite(handle, buffers[0], position) == len(buffers[0]):
            return
        waiting = [memoryview(b).cast("B") for b in buffers if len(b)]
        while waiting:
            written = os.pwritev(handle, waiting[:IOV_MAX], position)
            position += written
            while waiting and written >= len(waiting[0]):
                written -= len(waiting[0])
                del waiting[0]
            if written:
                waiting[0] = waiting[0][written:]

    def truncate(self, handle: int, size: int) -> None:
        os.ftruncate(handle, size)

    def read(self, handle: int, position: int, size: int) -> bytes:
        first = os.pread(handle, size, position)
        if len(first) == size or not first:
            return first
        pieces, got = [first], len(first)
        while got < size and (piece := os.pread(handle, size - got, position + got)):
            pieces.append(piece)
            got += len(piece)
        return b"".join(pieces)

    def sync(self, handle: int) -> None:
        os.fdatasync(handle)

    def descriptor(self, handle: int) -> int:
        return handle if type(self) is RealFiles else -1  # one that is derived may do more

    def sync_directory(self, path: str) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        make_private_directory(path)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def is_at(self, handle: int, path: str) -> bool:
        return os.path.samestat(os.fstat(handle), os.stat(path))

    def space(self, path: str) -> VolumeSpace:
        found = os.statvfs(path)
        return VolumeSpace(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)

    def lock(self, path: str, text: str) -> int:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise
        os.ftruncate(handle, 0)
        os.pwrite(handle, text.encode(), 0)
        return handle


def make_private_directory(path: str) -> None:
    """Make a directory and those above it, each its owner's alone: `os.makedirs` leaves those above to the umask."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path) or "."
    for each in reversed(missing):
        try:
            os.mkdir(each, DIRECTORY_MODE)
        except FileExistsError:
            if not os.path.isdir(each):
                raise


def private_file(path: str) -> BinaryIO:
    """A new empty file, readable by its owner only, in place of an existing one. raises: OSError"""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    os.fchmod(handle, FILE_MODE)
    return os.fdopen(handle, "wb")


def whole_file(files: Files, path: str) -> bytes:
    handle = files.open(path)
    try:
        return files.read(handle, 0, files.size(path))
    finally:
        files.close(handle)


def make_durable_directory(files: Files, path: str, known: str = "") -> None:
    """Make a directory, with those above it, so that a power loss leaves it. known: one above it that is durable."""
    above = [path]
    while above[-1] not in ("", "/", ".", known):
        parent = above[-1].rpartition("/")[0]
        if not known and above[-1] != path and files.exists(above[-1]):
            break
        above.append(parent or ("/" if path.startswith("/") else "."))
    files.make_directory(path)
    for parent in above[1:]:
        try:
            files.sync_directory(parent)
        except PermissionError:
            pass  # above the data directory, which was there before us


def replace_file(files: Files, path: str, *content: bytes | bytearray | memoryview) -> None:
    """Put a whole file in place, from pieces, so that a crash leaves the old one or the new one."""
    temporary = path + ".new"
    if files.exists(temporary):
        files.remove(temporary)
    handle = files.create(temporary)
    try:
        write_whole(files, handle, temporary, content)
        files.sync(handle)
    except OSError:
        remove_if_possible(files, temporary)  # on a full disk its blocks are needed
        raise
    finally:
        files.close(handle)
    files.rename(temporary, path)
    files.sync_directory(path.rpartition("/")[0])


def write_whole(files: Files, handle: int, path: str, content: Sequence[bytes | bytearray | memoryview]) -> None:
    """Write an empty file, from pieces. A large one goes past the page cache: fresh pages of it cost five times as much
    as copying to a buffer that is used again (docs/decisions/0003-large-groups-bypass-the-page-cache.md)."""
    size = sum(map(len, content))
    if size < DIRECT_BYTES_MIN:
        files.write(handle, 0, content)
        return
    # Small steps: a copy lets no other thread run.
    buffer = memoryview(mmap(-1, STEP_BYTES, MAP_PRIVATE | MAP_ANONYMOUS))
    position = filled = 0
    for piece in content:
        rest = memoryview(piece).cast("B")
        while len(rest):
            taken = min(len(rest), STEP_BYTES - filled)
            buffer[filled : filled + taken] = rest[:taken]
            filled += taken
            rest = rest[taken:]
            if filled == STEP_BYTES:
                files.write_direct(handle, path, position, buffer)
                position += STEP_BYTES
                filled = 0
    if filled:
        pages = (filled + PAGE - 1) // PAGE * PAGE
        files.write_direct(handle, path, position, buffer[:pages])
        files.truncate(handle, size)


def remove_if_possible(files: Files, path: str) -> None:
    """Remove an invalid file; if that fails, the next writer of its name removes it."""
    try:
        files.remove(path)
    except OSError:
        pass
