"""How far each partition has been exported to the lake, for retention: as the exporter's markers say.

A marker is read by the thread that may wait for a disk, at most a moment before it is used."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Protocol

from commitlog.disk.export_marker import exported_lsn
from commitlog.disk.files import Files
from rumq.loop.ports import ReadPool


class StreamPartition(Protocol):
    """What is used of `commitlog.Partition`."""

    stream: str
    directory: str


class ExportPositions:
    def __init__(self, files: Files, streams: Collection[str], bytes_max: int) -> None:
        """streams: those that are exported; bytes_max: kept of each partition, beyond retention, until it is"""
        self._files, self._streams = files, frozenset(streams)
        self.bytes_max = bytes_max
        self._known: dict[str, int] = {}
        self._asked: set[str] = set()

    def wanted_lsn(self, partition: StreamPartition, reader: ReadPool) -> int | None:
        """From where on records must wait for the exporter; None: none must. Has the marker read again meanwhile."""
        return self.unexported_lsn(partition, reader) if self.bytes_max else None

    def unexported_lsn(self, partition: StreamPartition, reader: ReadPool) -> int | None:
        """From where on nothing is exported yet; None: this stream is not exported. Has the marker read again."""
        if partition.stream not in self._streams:
            return None
        directory = partition.directory
        if directory not in self._asked:
            self._asked.add(directory)
            reader.submit(partial(exported_lsn, self._files, directory), partial(self._read, directory))
        return self._known.get(directory, 0)

    def _read(self, directory: str, lsn: int | None, fault: BaseException | None) -> None:
        self._asked.discard(directory)
        if fault is None and lsn is not None:
            self._known[directory] = lsn
