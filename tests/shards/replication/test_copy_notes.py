"""What a leader notes of its own copies."""

from types import SimpleNamespace
from typing import Any

from rumq.cluster.replication.standby.standby_core import NOTE_SECONDS
from rumq.shards.replication.copy_notes import CopyNotes

P = "main/g1/p0"


class Reader:
    def submit(self, job: Any, done: Any, lane: int = 0) -> None:
        done(job(), None)


def test_what_is_committed_and_synced_is_noted_every_second_if_it_has_changed() -> None:
    core: Any = SimpleNamespace(own={P: 7, "fast/g1/p0": 9}, committed=lambda key: 5)
    source, unsynced = SimpleNamespace(end=("seg-1", 4096)), "fast/g1/p0"
    copied: Any = {
        key: SimpleNamespace(source=source, partition=SimpleNamespace(writer=SimpleNamespace(sync_groups=is_synced)))
        for key, is_synced in ((P, True), (unsynced, False))
    }
    noted: list[Any] = []
    notes = CopyNotes(core, copied, Reader(), lambda *what: noted.append(what), 10.0)
    notes.look(10.0 + NOTE_SECONDS - 0.01)
    assert noted == []
    notes.look(10.0 + NOTE_SECONDS)
    assert noted == [({P: 5}, {P: (7, "seg-1")})]
    notes.look(10.0 + 2 * NOTE_SECONDS)
    assert len(noted) == 1, "nothing has changed"
    core.own[P] = 8
    notes.look(10.0 + 3 * NOTE_SECONDS)
    assert noted[1] == ({P: 5}, {P: (8, "seg-1")})
