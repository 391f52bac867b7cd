"""A replica's notes that are on no disk: the real ones, saved nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commitlog.disk.files import RealFiles
from commitlog.replica.replica_note import Note
from commitlog.replica.replica_state import StoredReplicaState


class MemoryState(StoredReplicaState):
    def __init__(self, note: Note | None = None) -> None:
        super().__init__(RealFiles(), ["memory"], note or Note(disk="memory"))

    def _save(self, change: Mapping[str, Any]) -> None:
        if change:
            self._note = self._note._replace(**change, saves=self._note.saves + 1)
