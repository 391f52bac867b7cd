"""The simulated disk does what its fault model says: the tests of the log rest on it."""

import errno
from random import Random

import pytest

from commitlog.testing.simulated_device import SECTOR
from commitlog.testing.simulated_files import SimulatedFiles


def with_a_file(content: bytes = b"old" * 1000) -> tuple[SimulatedFiles, int]:
    files = SimulatedFiles()
    files.make_directory("d")
    files.sync_directory("")
    handle = files.create("d/f")
    files.write(handle, 0, [content[:7], content[7:]])
    files.sync(handle)
    files.sync_directory("d")
    return files, handle


def test_what_was_synced_survives_and_what_was_not_may_not() -> None:
    files, handle = with_a_file()
    files.write(handle, 3000, [b"new"])
    assert files.content("d/f") == b"old" * 1000 + b"new"
    assert files.after_power_loss(lambda n: 0).content("d/f") == b"old" * 1000
    assert files.after_power_loss(lambda n: n - 1).content("d/f") == b"old" * 1000 + b"new"
    assert files.after_kill().content("d/f") == b"old" * 1000 + b"new"


def test_sectors_survive_in_any_combination_and_whole() -> None:
    files, handle = with_a_file(bytes(4 * SECTOR))
    files.write(handle, 0, [b"\1" * 4 * SECTOR])
    seen = set()
    for seed in range(200):
        content = files.after_power_loss(Random(seed).randrange).content("d/f")
        sectors = [set(content[at : at + SECTOR]) for at in range(0, 4 * SECTOR, SECTOR)]
        assert all(len(sector) == 1 for sector in sectors)
        seen.add(content[::SECTOR])
    assert len(seen) == 16


def test_a_length_that_was_not_synced_reaches_as_far_as_a_sector_that_survived() -> None:
    files, handle = with_a_file(b"a" * SECTOR)
    files.write(handle, SECTOR, [b"b" * SECTOR + b"c" * 10])
    found = {files.after_power_loss(Random(seed).randrange).content("d/f") for seed in range(50)}
    assert found == {
        b"a" * SECTOR, b"a" * SECTOR + b"b" * SECTOR, b"a" * SECTOR + b"b" * SECTOR + b"c" * 10,
        b"a" * SECTOR + bytes(SECTOR) + b"c" * 10,
    }  # fmt: skip


def test_a_name_that_was_not_synced_may_vanish_with_all_its_content() -> None:
    files, _ = with_a_file()
    handle = files.create("d/g")
    files.write(handle, 0, [b"x"])
    files.sync(handle)
    assert files.after_power_loss(lambda n: 0).names("d") == ["f"]
    assert files.after_power_loss(lambda n: 1).content("d/g") == b"x"
    files.make_directory("e/deep")
    files.sync_directory("e")
    assert not files.after_power_loss(lambda n: 0).exists("e")
    files.remove("d/f")
    assert files.after_power_loss(lambda n: 0).exists("d/f")


def test_a_rename_is_before_or_after_and_never_half() -> None:
    files, _ = with_a_file(b"old")
    handle = files.create("d/f.new")
    files.write(handle, 0, [b"new"])
    files.sync(handle)
    files.sync_directory("d")
    files.rename("d/f.new", "d/f")
    lost, kept = files.after_power_loss(lambda n: 0), files.after_power_loss(lambda n: 1)
    assert (lost.names("d"), lost.content("d/f")) == (["f", "f.new"], b"old")
    assert (kept.names("d"), kept.content("d/f")) == (["f"], b"new")


def test_after_a_failed_sync_the_next_one_lies() -> None:
    files, handle = with_a_file(bytes(SECTOR))
    files.write(handle, 0, [b"x" * SECTOR])
    files.fail = {len(files.calls): errno.EIO}
    with pytest.raises(OSError, match="Input/output error"):
        files.sync(handle)
    files.sync(handle)
    assert files.content("d/f") == b"x" * SECTOR
    assert files.after_power_loss(lambda n: 1).content("d/f") == bytes(SECTOR)
    files.write(handle, 0, [b"y"])  # the sector is written to again
    files.sync(handle)
    assert files.after_power_loss(lambda n: 0).content("d/f") == b"y" + b"x" * (SECTOR - 1)


def test_a_truncation_that_a_failed_sync_lost_leaves_the_old_end_on_the_device() -> None:
    files, handle = with_a_file()
    files.truncate(handle, 1000)
    files.fail = {len(files.calls): errno.EIO}
    files.choose = lambda n: 0
    with pytest.raises(OSError, match="Input"):
        files.sync(handle)
    files.fail = {}
    files.sync(handle)
    assert len(files.content("d/f")) == 1000
    assert len(files.after_power_loss(lambda n: 0).content("d/f")) == 3000


def test_a_failed_write_may_have_written_any_part() -> None:
    files, handle = with_a_file(b"")
    for part in (0, 2, 4):
        files.choose = lambda n, part=part: part  # type: ignore[misc]
        files.fail = {len(files.calls): errno.ENOSPC}
        with pytest.raises(OSError) as fault:
            files.write(handle, 0, [b"abcd"])
        assert fault.value.errno == errno.ENOSPC
        assert files.content("d/f") == b"abcd"[:part]


def test_faults_come_by_the_number_of_the_call_and_can_be_replayed() -> None:
    files, handle = with_a_file()
    assert [name for name, _ in files.calls] == [
        "make_directory", "sync_directory", "create", "write", "sync", "sync_directory",
    ]  # fmt: skip
    files.read(handle, 0, 1)
    assert len(files.calls) == 6, "reads are not counted"
    files.broken = errno.EROFS
    for call in (
        lambda: files.create("d/h"),
        lambda: files.remove("d/f"),
        lambda: files.rename("d/f", "d/g"),
    ):
        with pytest.raises(OSError, match="Read-only"):
            call()
    assert files.names("d") == ["f"]


def test_locks_are_of_a_process_and_end_with_it() -> None:
    files, _ = with_a_file()
    handle = files.lock("d/LOCK", "pid 1\n")
    with pytest.raises(BlockingIOError):
        files.beside().lock("d/LOCK", "pid 2\n")
    assert files.content("d/LOCK") == b"pid 1\n"
    files.after_kill().lock("d/LOCK", "pid 3\n")
    files.close(handle)
    files.beside().lock("d/LOCK", "pid 4\n")
