"""Files of secrets and rules: read with a check of their permissions, replaced atomically."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rumq.auth.errors import SecretsError

BYTES_MAX = 256 * 2**20


def exposed(path: str) -> str:
    """Why the file is not secret, and the remedy; empty where only its owner and group can read it."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return ""
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        return f"everybody on this machine can read or write it: chmod o-rw {path}"
    return ""


def read_secrets(path: str, *, strict: bool = True) -> str:
    """The text of a file with secrets. strict: refuse one that others can read

    raises: SecretsError
    """
    if strict and (problem := exposed(path)):
        raise SecretsError(path, 0, problem)
    return read_text(path)


def read_rules(path: str) -> str:
    """The text of a file that may be world-readable, but not writable. raises: SecretsError"""
    try:
        if os.stat(path).st_mode & stat.S_IWOTH:
            raise SecretsError(path, 0, f"everybody on this machine can write it: chmod o-w {path}")
    except OSError:
        pass  # `read_text` reports it
    return read_text(path)


def read_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(BYTES_MAX + 1)
    except OSError as fault:
        raise SecretsError(path, 0, f"cannot be read: {fault.strerror}") from None
    if len(raw) > BYTES_MAX:
        raise SecretsError(path, 0, f"is larger than {BYTES_MAX} bytes")
    try:
        return raw.decode()
    except UnicodeDecodeError as fault:
        raise SecretsError(path, raw[: fault.start].count(b"\n") + 1, "is not UTF-8") from None


@contextmanager
def locked(path: str) -> Iterator[None]:
    """While one process reads and replaces the file; others that ask for this wait. raises: OSError"""
    handle = os.open(Path(path).resolve().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def replace(path: str, text: str) -> None:
    """Replace a file of secrets atomically; only its owner can read a new one.

    raises: OSError
    """
    target = Path(path).resolve()
    try:
        mode = stat.S_IMODE(target.stat().st_mode) & ~(stat.S_IRWXO)
        owner = (target.stat().st_uid, target.stat().st_gid)
    except FileNotFoundError:
        mode, owner = 0o600, None
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if owner is not None and owner != (os.geteuid(), os.getegid()):
                try:
                    os.fchown(file.fileno(), *owner)
                except PermissionError:
                    pass  # a writer that may not change the owner becomes the owner
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
