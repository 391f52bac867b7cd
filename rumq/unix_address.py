"""Addresses of Unix sockets: one holds 107 bytes, and a data directory may be deeper. unix(7)"""

from __future__ import annotations

import os

ADDRESS_BYTES_MAX = 107


def fits(path: str) -> bool:
    """Whether the path itself is an address."""
    return len(os.fsencode(path)) <= ADDRESS_BYTES_MAX


class Address:
    """The address of a Unix socket, however long its path: by way of a descriptor of its directory where it must be.

    raises: OSError, as a context: the directory cannot be opened"""

    def __init__(self, path: str) -> None:
        self._path = path
        self._directory = -1

    def __enter__(self) -> str:
        if fits(self._path):
            return self._path
        folder, _, name = self._path.rpartition("/")
        self._directory = os.open(folder or "/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._directory}/{name}"

    def __exit__(self, *_: object) -> None:
        if self._directory >= 0:
            os.close(self._directory)
