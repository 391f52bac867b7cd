"""The storage of a lake: a folder of this machine, or one that pyarrow reaches by a URI (s3://, gs://, hdfs://).

A file appears whole or not at all. Names are relative to the lake, with "/" between them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qsl, urlsplit

from commitlog.disk.files import DIRECTORY_MODE
from rumq.lake.errors import LakeError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import fs

LOCK = "_rumq/LOCK"
NEW = ".new"
SECRETS = {
    "secret_key",
    "secret_access_key",
    "session_token",
    "account_key",
    "sas_token",
    "access_key",
}  # in a URI
GROUP_READS = 0o050
Step = Callable[[str], None]
WITHOUT_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}  # error texts of such file systems


class Folder(Protocol):
    """Every method may raise OSError. location: as the operator wrote it; system: of pyarrow.fs, for `path`"""

    location: str
    system: fs.FileSystem | None

    def lock(self) -> None:
        """Lock it for writing. raises: LakeError if another process has the lock"""

    def unlock(self) -> None: ...

    def put(self, name: str, data: bytes | pa.Buffer, step: Step) -> None:
        """Replace a file atomically, synced. step: called with the name of each step done"""

    def copy(self, name: str, to: str, step: Step) -> None:
        """Give a file a second name, atomically, synced."""

    def append(self, name: str, data: bytes) -> None:
        """Append bytes to a file, synced."""

    def read(self, name: str) -> bytes: ...

    def size(self, name: str) -> int:
        """-1 if there is no such file."""

    def names(self, name: str) -> list[str]:
        """All files below a folder, sorted; none if there is no such folder."""

    def remove(self, name: str) -> None:
        """No error if it does not exist."""

    def path(self, name: str) -> str:
        """The path for `system`."""

    def name(self, name: str) -> str:
        """The location for any other reader: a path, or a URI with its scheme."""


def folder_at(location: str) -> Folder:
    """raises: LakeError if the URI cannot be used"""
    if "://" not in location:
        return LocalFolder(location)
    if has_secret(location):
        raise LakeError(
            without_secret(location),
            "URIs appear in settings, events and notes beside the log, and this one contains a secret: give that as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or as a profile (docs/guides/lake.md)",
        )
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, root = fs.FileSystem.from_uri(location)
    except (pa.ArrowInvalid, OSError) as fault:
        raise LakeError(location, f"it cannot be used: {fault}") from None
    return LocalFolder(root) if isinstance(system, fs.LocalFileSystem) else RemoteFolder(location, system, root)


class LocalFolder:
    system = None  # pyarrow's own, for paths

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/") or "/"
        self._lock = -1

    def lock(self) -> None:
        self._make(f"{self.location}/_rumq")
        lock = self._open(self.path(LOCK), os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._lock = lock
        except BlockingIOError:
            os.close(lock)
            raise LakeError(
                self.location, "another process exports to it: end that one, or name another folder"
            ) from None

    def unlock(self) -> None:
        """Release the lock."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def put(self, name: str, data: bytes | pa.Buffer, step: Step) -> None:
        path = self.path(name)
        above, _, last = path.rpartition("/")
        self._make(above)
        temporary = f"{above}/_{last}{NEW}"
        handle = self._open(temporary, os.O_WRONLY | os.O_TRUNC)
        try:
            whole = memoryview(data)
            at = 0
            while at < len(whole):
                at += os.write(handle, whole[at : at + (1 << 24)])
            step("written")
            os.fsync(handle)
        finally:
            os.close(handle)
        step("synced")
        os.rename(temporary, path)
        step("renamed")
        sync_directory(above)

    def copy(self, name: str, to: str, step: Step) -> None:
        path = self.path(to)
        above, _, last = path.rpartition("/")
        self._make(above)
        temporary = f"{above}/_{last}{NEW}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        try:
            os.link(self.path(name), temporary)
        except OSError as fault:
            if fault.errno not in WITHOUT_LINKS:
                raise
            self.put(to, self.read(name), step)
            return
        os.rename(temporary, path)
        step("linked")
        sync_directory(above)

    def append(self, name: str, data: bytes) -> None:
        path = self.path(name)
        self._make(path.rpartition("/")[0])
        is_new = not os.path.exists(path)
        handle = self._open(path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        if is_new:
            sync_directory(path.rpartition("/")[0])

    def read(self, name: str) -> bytes:
        with open(self.path(name), "rb") as file:
            return file.read()

    def size(self, name: str) -> int:
        try:
            return os.stat(self.path(name)).st_size
        except FileNotFoundError:
            return -1

    def names(self, name: str) -> list[str]:
        found = []
        for above, _, files in os.walk(self.path(name) if name else self.location):
            found += [os.path.relpath(f"{above}/{file}", self.location) for file in files]
        return sorted(found)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(name))

    def path(self, name: str) -> str:
        return f"{self.location}/{name}"

    def name(self, name: str) -> str:
        return self.path(name)

    def _make(self, path: str) -> None:
        """Create a directory and those above it, synced."""
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path) or "."
        for each in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(each, self._mode())
            sync_directory(os.path.dirname(each) or ".")

    def _open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, self._mode() & 0o666)

    def _mode(self) -> int:
        """Modes of new files: the group permissions of the lake's folder, none for others."""
        try:
            return DIRECTORY_MODE | (os.stat(self.location).st_mode & GROUP_READS)
        except FileNotFoundError:
            return DIRECTORY_MODE


class RemoteFolder:
    """An object store: an object appears whole when it is closed. It does not exclude a second writer."""

    def __init__(self, location: str, system: fs.FileSystem, root: str) -> None:
        self.location, self.system, self._root = location, system, root.rstrip("/")

    def lock(self) -> None:
        """Object stores have no lock: the operator must run only one exporter."""

    def unlock(self) -> None:
        pass

    def put(self, name: str, data: bytes | pa.Buffer, step: Step) -> None:
        self.system.create_dir(self.path(name).rpartition("/")[0], recursive=True)
        with self.system.open_output_stream(self.path(name)) as out:
            out.write(data)
            step("written")
        step("synced")
        step("renamed")

    def copy(self, name: str, to: str, step: Step) -> None:
        self.system.create_dir(self.path(to).rpartition("/")[0], recursive=True)
        self.system.copy_file(self.path(name), self.path(to))
        step("linked")

    def append(self, name: str, data: bytes) -> None:
        before = self.read(name) if self.size(name) > 0 else b""
        self.put(name, before + data, lambda _: None)

    def read(self, name: str) -> bytes:
        with self.system.open_input_stream(self.path(name)) as file:
            return bytes(file.read())

    def size(self, name: str) -> int:
        info = self.system.get_file_info(self.path(name))
        return info.size if info.is_file else -1

    def names(self, name: str) -> list[str]:
        from pyarrow import fs

        below = fs.FileSelector(self.path(name).rstrip("/"), allow_not_found=True, recursive=True)
        found = [info.path for info in self.system.get_file_info(below) if info.is_file]
        return sorted(path.removeprefix(f"{self._root}/") for path in found)

    def remove(self, name: str) -> None:
        if self.size(name) >= 0:
            self.system.delete_file(self.path(name))

    def path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def name(self, name: str) -> str:
        # Parameters behind a ? are for pyarrow: endpoint, region.
        parts = urlsplit(self.location)
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}/{name}"


def has_secret(location: str) -> bool:
    """Whether a URI contains a key or a password: before an @, as in s3://key:secret@bucket, or behind the ?"""
    parts = urlsplit(location)
    said = {name.lower() for name, _ in parse_qsl(parts.query)}
    return parts.password is not None or bool(said & SECRETS)


def without_secret(location: str) -> str:
    """For a message."""
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def absolute(location: str) -> str:
    """An absolute location."""
    return location if "://" in location else os.path.abspath(location)


def sync_directory(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
