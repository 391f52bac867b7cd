"""What a leader notes of its own copies: a disk that comes back without it is found by these notes.

docs/explanation/replication.md, R11. Written on a thread, for it waits for a disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rumq.cluster.replication.leader_core import LeaderCore
from rumq.cluster.replication.standby.standby_core import NOTE_SECONDS
from rumq.loop.ports import ReadPool
from rumq.shards.replication.feeding.copies import PartitionCopies
from rumq.shards.replication.feeding.feeder import FEEDS

Holdings = dict[str, tuple[int, str]]
Note = Callable[[dict[str, int], Holdings], None]


class CopyNotes:
    def __init__(
        self, core: LeaderCore, copied: Mapping[str, PartitionCopies], reader: ReadPool, note: Note, now: float
    ) -> None:
        """note: by partition, what is committed, and how far this node's copy is synced and in which segment"""
        self._core, self._copied, self._reader, self._note = core, copied, reader, note
        self._at = now + NOTE_SECONDS
        self._noted: tuple[dict[str, int], Holdings] = ({}, {})

    def look(self, now: float) -> None:
        """Note what has changed, every NOTE_SECONDS."""
        if now < self._at:
            return
        self._at = now + NOTE_SECONDS
        # What this node does not sync, a power cut may take without anybody having done wrong.
        synced = {key: each for key, each in self._copied.items() if each.partition.writer.sync_groups}
        marks = {key: self._core.committed(key) for key in synced}
        held = {key: (self._core.own[key], copied.source.end[0]) for key, copied in synced.items()}
        if (marks, held) != self._noted:
            self._noted = marks, held
            self._reader.submit(lambda: self._note(marks, held), lambda _, fault: None, FEEDS)
