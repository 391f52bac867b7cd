"""The process of a shard on a node, up to where it follows. Its life in a node: test_run.py."""

import os
import signal
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import StreamSpec
from rumq.cluster.node.log_copies import CopyId
from rumq.process.node import shard_process
from rumq.process.node.shard_process import StopSignal, copies_of, note_doubt


def place(index: int, count: int) -> Any:
    streams = [StreamSpec("main", ("#",), 4, "disk"), StreamSpec("plant", ("p/#",), 3, "disk")]
    return SimpleNamespace(index=index, count=count, streams=streams, generation=5)


def test_every_partition_and_journal_belongs_to_one_shard() -> None:
    copies = [copies_of(place(index, 3)) for index in range(3)]
    assert copies[1] == [
        CopyId("main/g1/p1", "main", 1), CopyId("plant/g1/p0", "plant", 0), CopyId("_state/g5/p1", "_state", 1)
    ]  # fmt: skip
    keys = [each.key for some in copies for each in some]
    assert len(keys) == len(set(keys)) == 4 + 3 + 3


def test_a_copy_that_may_lack_what_it_acknowledged_has_no_say_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[Any, ...]] = []
    monkeypatch.setattr(shard_process, "tell", lambda name, **fields: told.append((name, fields)))
    distrusted: list[str] = []
    hole, lost, old = "main/g1/p1: a hole", "main/g1/p0 ends at lsn 3", "the notes do not fit each other"

    def noted(copies: str, lack: str, notes: str) -> None:
        state: Any = SimpleNamespace(
            distrust=lambda: distrusted.append("all"), miss=lambda: distrusted.append("short"), doubt=notes,
            is_short=False,
        )  # fmt: skip
        found: Any = SimpleNamespace(doubt=copies, restore_notes=lambda state: lack)
        note_doubt(found, state, 1)

    noted("", "", "")
    assert told == distrusted == []
    for why in ((hole, "", ""), ("", lost, ""), ("", "", old)):
        noted(*why)
    assert distrusted == ["all", "short", "all"]
    assert [fields["why"] for _, fields in told] == [hole, lost, old]
    assert {(name, fields["shard"]) for name, fields in told} == {("cluster.copy_doubted", 1)}


def test_a_copy_whose_records_are_there_again_is_whole_and_that_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[tuple[Any, ...]] = []
    monkeypatch.setattr(shard_process, "tell", lambda name, **fields: told.append((name, fields)))
    found_again: list[bool] = []
    state: Any = SimpleNamespace(
        find_again=lambda: found_again.append(True), miss=lambda: None, doubt="", is_short=True, opened=4
    )
    lack = "main/g1/p0 ends at lsn 3"
    copies: Any = SimpleNamespace(doubt="", restore_notes=lambda state: lack)
    note_doubt(copies, state, 1)
    assert not found_again, "it lacks them still"
    copies.restore_notes = lambda state: ""
    note_doubt(copies, state, 1)
    assert found_again and told[-1] == ("cluster.copy_whole", {"shard": 1, "opened": 4})


def test_a_stop_signal_is_noted_until_somebody_else_takes_it() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        stopping = StopSignal()
        assert not stopping.came
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.came
        stopping.release()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
