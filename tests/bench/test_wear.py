"""`python -m bench wear` in its shortest form: what is written and what stays is counted, by part."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from bench.peers.peer import DAEMONS
from bench.process import written_bytes
from bench.wear import command
from bench.wear.counted_files import PAGE, CountedFiles
from bench.wear.day import day
from bench.wear.lone import PAYLOAD_BYTES, PEERS, lone_messages, payload
from bench.wear.parts import part_of, segments, taken

MOSQUITTO = shutil.which("mosquitto", path=os.environ["PATH"] + DAEMONS)


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("main/g1/p0/00000000000000000000-b5d3ba4f.seg", "log"),
        ("main/g1/p0/00000000000000000000-b5d3ba4f.idx", "index"),
        ("main/g1/p0/topics.snap.new", "index"),
        ("main/g1/p0/MANIFEST", "other"),
        ("_state/g1/p0/00000000000000000000-b5d3ba4f.seg", "journal"),
        ("_state/g1/p0/MANIFEST", "journal"),
        ("LOCK", "other"),
    ],
)
def test_a_file_belongs_to_the_part_that_writes_it(path: str, part: str) -> None:
    assert part_of(path) == part


def test_what_a_directory_takes_is_counted_in_blocks(tmp_path: Path) -> None:
    folder = tmp_path / "main" / "g1" / "p0"
    folder.mkdir(parents=True)
    (folder / "1.seg").write_bytes(b"x" * (PAGE + 1))
    with (folder / "2.seg").open("wb") as sparse:
        sparse.truncate(100 * PAGE)
    assert taken(tmp_path) == Counter({"log": 2 * PAGE}) and segments(tmp_path) == 2


def test_a_page_counts_once_for_each_sync_of_its_file(tmp_path: Path) -> None:
    files = CountedFiles(tmp_path)
    handle = files.create(f"{tmp_path}/LOCK")
    files.write(handle, 0, [b"a", b"b"])
    files.write(handle, PAGE - 1, [b"cd"])
    assert not files.written
    files.sync(handle)
    files.sync(handle)
    assert files.written == {"other": 2 * PAGE}
    files.write(handle, 10, [b"e"])
    files.close(handle)
    assert files.written == {"other": 3 * PAGE}, "the kernel would write it sooner or later"


def test_what_a_process_writes_is_what_the_kernel_charges_it_with(tmp_path: Path) -> None:
    before = written_bytes(os.getpid())
    with (tmp_path / "file").open("wb") as file:
        file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    written = written_bytes(os.getpid()) - before
    if not written:
        pytest.skip("its disk is in memory")
    assert written >= 1 << 20


def test_payloads_are_of_one_size_and_each_another_one() -> None:
    assert {len(payload(number)) for number in (0, 9, 863_999)} == {PAYLOAD_BYTES}
    assert payload(1) != payload(11)


@pytest.mark.parametrize(
    "name",
    ["rumq", *(pytest.param(each, marks=pytest.mark.skipif(not MOSQUITTO, reason="not installed"))
     for each in PEERS if each != "rumq")],
)  # fmt: skip
def test_a_broker_is_measured(name: str) -> None:
    found = lone_messages(PEERS[name], rate=200, count=40)
    assert found.messages == 40 and found.taken["log"] > 0
    if name == "rumq":
        assert found.durability == "disk" and found.taken["journal"] > 0
        assert found.written == 0 or found.written > 40 * 2 * PAGE, "a page of the log and one of the journal, at least"


def test_a_day_in_short_is_computed_by_part() -> None:
    found = day(10.0, 500)
    assert found.seconds == pytest.approx(52.0, abs=1.0)
    assert found.written["log"] > 500 * PAGE and found.written["journal"] > 500 * PAGE
    assert found.running["log"] >= found.stopped["log"] > 0 and found.segments == 1
    assert day(10.0, 500).written == found.written, "it is the same each time"


def test_the_journal_of_a_computed_hour_stays_small() -> None:
    found = day(10.0, 6000)
    assert found.running["journal"] < 4 << 20 < found.written["journal"]


def test_figures_are_printed_and_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.json"
    assert command.main(["--day", "--count", "200", "--json", str(file)]) == command.OK
    said = capsys.readouterr().out
    assert "200 lone messages of 42 bytes" in said and "together" in said
    assert '"segments": 1' in file.read_text()
    with pytest.raises(SystemExit):
        command.main(["--rate", "0"])
