"""What retention must know of the lake: up to where each partition is exported, as the exporter's notes say.

Knows no Parquet. The notes are read by the thread that waits for disks, at most a moment before they are used."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from commitlog.export_marker import exported_lsn
from commitlog.files import Files


class ExportPositions:
    def __init__(self, files: Files, streams: Collection[str], bytes_max: int) -> None:
        """streams: those that are exported; bytes_max: kept of each partition, beyond retention, until it is"""
        self._files, self._streams = files, frozenset(streams)
        self.bytes_max = bytes_max
        self._known: dict[str, int] = {}
        self._asked: set[str] = set()

    def wanted_lsn(self, part: Any, reader: Any) -> int | None:
        """Records from there on must wait for the exporter; None: none must. Has the note read again meanwhile."""
        return self.unexported_lsn(part, reader) if self.bytes_max else None

    def unexported_lsn(self, part: Any, reader: Any) -> int | None:
        """From where on nothing is exported yet; None: this stream is not. Has the note read again meanwhile."""
        if part.stream not in self._streams:
            return None
        directory = part.directory
        if directory not in self._asked:
            self._asked.add(directory)
            reader.submit(partial(exported_lsn, self._files, directory), partial(self._read, directory))
        return self._known.get(directory, 0)

    def _read(self, directory: str, lsn: int | None, fault: BaseException | None) -> None:
        self._asked.discard(directory)
        if fault is None and lsn is not None:
            self._known[directory] = lsn
