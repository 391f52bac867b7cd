"""The real files, with a count of the bytes that were read: progress of what reads a whole log.

Knows names and sizes of files, no record."""

from __future__ import annotations

import os
from collections.abc import Callable

from commitlog import RealFiles


class CountedFiles(RealFiles):
    """advance: told of bytes; those of a file that are read again do not count again"""

    def __init__(self, advance: Callable[[int], None]) -> None:
        super().__init__()
        self._advance = advance
        self._paths: dict[int, str] = {}
        self._reached: dict[str, int] = {}

    def open(self, path: str, *, write: bool = False) -> int:
        handle = super().open(path, write=write)
        self._paths[handle] = path
        return handle

    def read(self, handle: int, position: int, size: int) -> bytes:
        data = super().read(handle, position, size)
        path = self._paths.get(handle, "")
        if path.endswith(".seg"):
            before, end = self._reached.get(path, 0), position + len(data)
            if end > before:
                self._reached[path] = end
                self._advance(end - before)
        return data


def segment_bytes(root: str) -> int:
    """Of all segments below a directory. raises: nothing; what is gone meanwhile does not count"""
    return sum(size for path, size in sizes(root) if path.endswith(".seg"))


def all_bytes(root: str) -> int:
    return sum(size for _, size in sizes(root))


def sizes(root: str) -> list[tuple[str, int]]:
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            try:
                found.append((f"{folder}/{name}", os.stat(f"{folder}/{name}").st_size))
            except OSError:
                pass  # removed meanwhile
    return found
