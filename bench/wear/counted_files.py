"""The machine's file system without its waiting: a sync counts the pages that it would write, and writes none.

So a day of a broker passes in minutes, and what it wrote is known by part. Metadata of the file system is not
counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.wear.parts import part_of
from commitlog import RealFiles

PAGE = 4096


class CountedFiles(RealFiles):
    """written: bytes of pages that changed between two syncs of their file, by part; root: of the data directory"""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.written: Counter[str] = Counter()
        self._root = f"{root}/"
        self._paths: dict[int, str] = {}
        self._dirty: defaultdict[int, set[int]] = defaultdict(set)  # pages by handle

    def create(self, path: str) -> int:
        return self._known(super().create(path), path)

    def open(self, path: str, *, write: bool = False) -> int:
        return self._known(super().open(path, write=write), path)

    def _known(self, handle: int, path: str) -> int:
        self._paths[handle] = path
        return handle

    def close(self, handle: int) -> None:
        self.sync(handle)  # the kernel would write it sooner or later
        self._paths.pop(handle, None)
        self._dirty.pop(handle, None)
        super().close(handle)

    def write(self, handle: int, position: int, buffers: Sequence[bytes | bytearray | memoryview]) -> None:
        size = sum(memoryview(buffer).nbytes for buffer in buffers)
        self._dirty[handle].update(range(position // PAGE, -(-(position + size) // PAGE)))
        super().write(handle, position, buffers)

    def write_direct(self, handle: int, path: str, position: int, data: memoryview) -> None:
        self.write(handle, position, [data])

    def sync(self, handle: int) -> None:
        path = self._paths.get(handle)
        if path is not None and (pages := self._dirty[handle]):
            self.written[part_of(path.removeprefix(self._root))] += PAGE * len(pages)
            pages.clear()

    def sync_directory(self, path: str) -> None: ...
