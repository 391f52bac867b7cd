"""The file of committed offsets: what was acknowledged is there after any loss of power, and nothing goes back."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.errors import DataDirectoryError
from rumq.kafka.groups import commit_file
from rumq.kafka.groups.commit_entries import Commit, Forget
from rumq.kafka.groups.commit_file import (
    CHECKED_BYTES_MAX,
    COMPACT_BYTES_MIN,
    COMPACT_RATIO,
    ENTRY_BEGINNINGS,
    FORMAT,
    HEAD,
    NAME,
    CommitFile,
    record_of,
)
from rumq.kafka.groups.committed_offsets import CommittedOffsets
from rumq.kafka.groups.messages import KafkaGroupKey
from tests.commitlog.test_log_agrees_with_a_list import PowerLost, chooser, power_for

PATH = f"d/{NAME}"
KEY = KafkaGroupKey("anna", "g")
LOSSES = ([0], [1], [0, 1], [1, 0], [3, 1, 0, 0], [2, 0, 0, 1, 0, 1, 1], [3, 1, 1, 0, 1])


def commit(offset: int, partition: int = 0, metadata: str = "") -> Commit:
    return Commit("anna", "g", "main", partition, offset, -1, metadata, 1_000)


class Kept:
    """The file and what is in memory, as the server has them."""

    def __init__(self, files: SimulatedFiles) -> None:
        files.make_directory("d")
        files.sync_directory(".")
        self.file = CommitFile(files, "d")
        self.offsets = CommittedOffsets(1 << 20)
        self.offsets.take(self.file.read())

    def save(self, *entries: Commit | Forget) -> None:
        self.file.append(entries, self.offsets.all)
        self.offsets.take(entries)

    def found(self) -> dict[int, int]:
        return {number: each.offset for (_, number), each in self.offsets.of(KEY).items()}


def test_what_was_saved_is_found_again() -> None:
    files = SimulatedFiles()
    kept = Kept(files)
    kept.save(commit(5), commit(7, 1, "note"))
    kept.save(commit(6))
    again = Kept(files.after_kill())
    assert again.found() == {0: 6, 1: 7} and again.file.damage == ""
    again.save(Forget("anna", "g", "main", 1), commit(3))
    assert Kept(again.file._files.after_kill()).found() == {0: 3}  # type: ignore[attr-defined]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_power_loss_at_any_call_takes_nothing_back(loss: list[int]) -> None:
    """Each of a hundred commits, some of which write the file anew, cut at each call."""
    call, is_over = 0, False
    while not is_over:
        files = SimulatedFiles()
        kept = Kept(files)
        kept.save(commit(1, metadata="x" * 400))
        kept.file.close()
        kept = Kept(files := files.after_kill())
        files.before_call = power_for(call)
        acknowledged = 1
        try:
            for offset in range(2, 6):
                kept.save(commit(offset, metadata="x" * 400))
                acknowledged = offset
            is_over = True
        except PowerLost:
            pass
        found = Kept(files.after_power_loss(chooser(loss))).found()[0]
        assert acknowledged <= found <= acknowledged + 1, f"call {call}"
        call += 1
    assert call > 10


def test_the_file_stays_a_small_multiple_of_what_is_in_it() -> None:
    files = SimulatedFiles()
    kept = Kept(files)
    for offset in range(3_000):
        kept.save(commit(offset, offset % 5, "m" * 500))
        assert files.size(PATH) <= max(COMPACT_BYTES_MIN, COMPACT_RATIO * 3_000) + 1_000
    assert Kept(files.after_kill()).found() == {each % 5: each for each in range(2_995, 3_000)}


def test_a_write_that_failed_is_written_over() -> None:
    files = SimulatedFiles()
    kept = Kept(files)
    kept.save(commit(1))
    real, files.sync = files.sync, refuse  # type: ignore[method-assign]
    with pytest.raises(OSError, match="disk"):
        kept.save(commit(2))
    files.sync = real  # type: ignore[method-assign]
    kept.save(commit(3, 1))
    assert Kept(files.after_kill()).found() == kept.found() == {0: 1, 1: 3}


def refuse(handle: int) -> None:
    raise OSError("the disk fails")


def test_half_a_write_at_the_end_is_no_damage() -> None:
    files = SimulatedFiles()
    kept = Kept(files)
    kept.save(commit(1))
    whole = files.content(PATH)
    kept.save(commit(2))
    for end in range(len(whole), len(files.content(PATH))):
        files.put(PATH, files.content(PATH)[:end])
        cut = Kept(files)
        assert cut.found() == {0: 1} and cut.file.damage == ""
        files.put(PATH, whole + files.content(PATH)[len(whole) :])


def test_damage_is_told_and_the_file_kept() -> None:
    files = SimulatedFiles()
    kept = Kept(files)
    for offset in range(1, 4):
        kept.save(commit(offset))
    data = bytearray(files.content(PATH))
    second = len(FORMAT) + (len(data) - len(FORMAT)) // 3 + 12
    data[second] ^= 1
    files.put(PATH, bytes(data))
    found = Kept(files)
    assert found.found() == {0: 1} and "cannot be read" in found.file.damage
    assert files.content(f"{PATH}.damaged") == bytes(data)


@pytest.mark.parametrize("at", [2, 100], ids=["in its length", "in its body"])
def test_damage_in_a_file_that_was_written_anew_is_told_however_long_its_records_are(at: int) -> None:
    files = SimulatedFiles()
    kept = Kept(files)
    kept.offsets.take(commit(1, number, "m" * 4_096) for number in range(230))
    kept.save(commit(1))
    data = bytearray(files.content(PATH))
    data[len(FORMAT) + at] ^= 1
    files.put(PATH, bytes(data))
    found = Kept(files)
    assert "cannot be read" in found.file.damage and files.content(f"{PATH}.damaged") == bytes(data)


def test_a_file_that_was_made_up_is_opened_at_a_cost_in_proportion_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everywhere something that may be a record as long as the rest: looked at once, and kept as damaged."""
    checked: list[int] = []

    def crc32(data: Any) -> int:
        checked.append(len(data))
        return 0

    files = SimulatedFiles()
    kept = Kept(files)
    body = b"\x91" + ENTRY_BEGINNINGS[0]
    piece = HEAD.pack(1 << 20, 1) + body
    files.put(PATH, FORMAT + piece * (2 * CHECKED_BYTES_MAX // len(piece) // 8))
    monkeypatch.setattr(commit_file.zlib, "crc32", crc32)
    kept.file.read()
    assert 1 << 20 < sum(checked) <= CHECKED_BYTES_MAX + (3 << 20)
    assert "cannot be read" in kept.file.damage and files.exists(f"{PATH}.damaged")


def test_a_file_of_a_newer_version_is_refused() -> None:
    files = SimulatedFiles()
    files.make_directory("d")
    files.put(PATH, b"rumq-kafka-commits-2\n")
    with pytest.raises(DataDirectoryError, match="use the rumq that wrote it"):
        CommitFile(files, "d").read()


def test_offsets_are_bounded_for_a_user_and_expire() -> None:
    offsets = CommittedOffsets(40_000)
    mine = [commit(1, number) for number in range(20)]
    assert offsets.has_room(KEY, mine) and not offsets.has_room(KEY, [commit(1, number) for number in range(30)])
    offsets.take(mine)
    assert not offsets.has_room(KEY, [commit(1, number) for number in range(20, 30)])
    assert offsets.has_room(KEY, [commit(2, number) for number in range(20)]), "what is there already is not more"
    assert not offsets.has_room(KEY, [commit(2, 1, "m" * 8000)]), "but its metadata is"
    assert offsets.forgotten(KEY, 1_000) == [] and len(offsets.forgotten(KEY, 1_001)) == 20
    offsets.take(offsets.forgotten(KEY))
    assert offsets.size == 0 and offsets.groups == [] and not offsets._sizes


@pytest.mark.parametrize("text", ["note", "näme", "€" * 20, "😀" * 20], ids=["ascii", "latin", "wide", "widest"])
@pytest.mark.parametrize(("groups", "each"), [(2_000, 1), (10, 200)], ids=["small groups", "large groups"])
def test_what_offsets_take_of_memory_is_no_more_than_is_counted(groups: int, each: int, text: str) -> None:
    """Texts of a request are its own, as they are read from its bytes; written, they are kept in UTF-8 too."""
    offsets = CommittedOffsets(1 << 30)
    gc.collect()
    tracemalloc.start()
    for group in range(groups):
        for number in range(each):
            made = Commit(f"{text}a", f"{text}{group}", f"{text}b", 1000 + number, 10**9 + number, -1,
                          f"{text}{number}", 10**12 + number)  # fmt: skip
            record_of([made])
            offsets.take([made])
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert offsets.size / 3 < taken <= offsets.size
