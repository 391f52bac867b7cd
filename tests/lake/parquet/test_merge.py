"""Small files of an hour become one: nothing is lost or doubled, whenever it stops. docs/guides/lake.md, "Merging"."""

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow.parquet as pq

from rumq import lake as the_lake
from rumq.lake.errors import LakeError
from rumq.lake.folder import LocalFolder
from rumq.lake.parquet.export import Exporter
from rumq.lake.parquet.verify import verify
from tests.lake.lakes import HOUR, MADE_NOW, Crash, Log, crash_at, lsns_in, parquet_files, rows_in

FIRST = MADE_NOW // HOUR


@pytest.fixture(scope="module")
def log() -> Log:
    """Segments in one hour, and two in the next."""
    made = Log()
    made.fill(13)
    made.fill(8, ts=MADE_NOW + HOUR, first=13)
    return made


def merged(log: Log, to: Path, before_hour: int = FIRST + 1, bytes_max: int = 1 << 20, **more: object) -> int:
    folder = LocalFolder(str(to))
    try:
        exporter = Exporter(log.files, "data", folder, **more)  # type: ignore[arg-type]
        exporter.run()
        return exporter.merge(before_hour, bytes_max)
    finally:
        folder.unlock()


def of_hour(to: Path, hour: str) -> list[Path]:
    return [path for path in parquet_files(to) if f"hr={hour}" in str(path)]


def test_the_files_of_an_hour_become_one_in_its_order(log: Log, tmp_path: Path) -> None:
    merged(log, tmp_path / "apart", FIRST)
    assert len(of_hour(tmp_path / "apart", "22")) == 4
    assert merged(log, tmp_path / "one") == 1
    (one,) = of_hour(tmp_path / "one", "22")
    assert len(of_hour(tmp_path / "one", "23")) == len(of_hour(tmp_path / "apart", "23")), "not over yet"
    assert rows_in(tmp_path / "one").equals(rows_in(tmp_path / "apart"))
    rows = pq.ParquetFile(one).read()
    order = list(zip(rows["topic"].to_pylist(), rows["topic_offset"].to_pylist(), strict=True))
    assert order == sorted(order)
    assert list(verify(LocalFolder(str(tmp_path / "one")))) == []
    assert merged(log, tmp_path / "one") == 0, "nothing is left to merge"
    assert the_lake.files(str(tmp_path / "one")) == [str(path) for path in parquet_files(tmp_path / "one")]


def test_a_merged_file_stays_below_its_bound(log: Log, tmp_path: Path) -> None:
    merged(log, tmp_path, bytes_max=2 * 4 * 20 * 150)
    assert len(of_hour(tmp_path, "22")) == 2
    assert lsns_in(tmp_path) == list(range(log.finished_lsn))


def test_a_merge_that_stops_anywhere_is_finished_and_no_reader_of_the_manifest_sees_it(
    log: Log, tmp_path: Path
) -> None:
    merged(log, tmp_path / "exported", FIRST)
    steps: list[str] = []
    merged(log, tmp_path / "whole", step=crash_at(0, steps))
    begin = len(steps) - steps[::-1].index("committed")
    assert steps[begin:][:5] == ["written", "synced", "renamed", "checked", "merged"] and steps[-1] == "removed"
    for number in range(begin + 1, len(steps) + 1):
        to = tmp_path / str(number)
        with pytest.raises(Crash):
            merged(log, to, step=crash_at(number, []))
        read = [lsn for path in the_lake.files(str(to)) for lsn in pq.ParquetFile(path).read()["lsn"].to_pylist()]
        assert sorted(read) == list(range(log.finished_lsn))
        merged(log, to)
        assert lsns_in(to) == list(range(log.finished_lsn)) and len(of_hour(to, "22")) == 1
        assert list(verify(LocalFolder(str(to)))) == []


def test_the_old_files_go_only_once_the_manifest_has_the_new_one(log: Log, tmp_path: Path) -> None:
    merged(log, tmp_path, FIRST)
    before = set(parquet_files(tmp_path))
    there: dict[str, bool] = {}
    merged(log, tmp_path, step=lambda name: there.setdefault(name, before <= set(parquet_files(tmp_path))))
    assert there["checked"] and there["merged"] and not there["removed"]


def test_a_damaged_file_is_not_merged_and_not_removed(log: Log, tmp_path: Path) -> None:
    merged(log, tmp_path, FIRST)
    path = parquet_files(tmp_path)[1]
    raw = bytearray(path.read_bytes())
    raw[100] ^= 1
    path.write_bytes(raw)
    before = parquet_files(tmp_path)
    with pytest.raises(LakeError, match="damaged"):
        merged(log, tmp_path)
    assert parquet_files(tmp_path) == before


def test_a_gap_may_lie_in_a_merged_file(tmp_path: Path) -> None:
    log = Log()
    log.fill(14)
    log.damage(1, 1)
    merged(log, tmp_path)
    assert len(parquet_files(tmp_path)) == 1
    (gap,) = pq.read_table(tmp_path / "_gaps").to_pylist()
    missing = range(gap["base_lsn"], gap["next_lsn"])
    assert sorted([*lsns_in(tmp_path), *missing]) == list(range(log.finished_lsn)) and len(missing) == 20
    assert list(verify(LocalFolder(str(tmp_path)))) == []


def test_what_a_query_has_been_told_of_stays_for_a_while_and_a_lister_sees_each_record_once(
    log: Log, tmp_path: Path
) -> None:
    told: list[tuple[int, list[str]]] = []
    exporter = Exporter(log.files, "data", LocalFolder(str(tmp_path)))
    exporter.run()
    for now_s in range(1000, 1350, 50):
        told.append((now_s - 1, the_lake.files(str(tmp_path))))
        if now_s == 1050:  # a start is no reason to remove them
            exporter.close()
            exporter = Exporter(log.files, "data", LocalFolder(str(tmp_path)))
        exporter.merge(FIRST + 1, now_s=now_s, keep_s=100)
        assert lsns_in(tmp_path) == list(range(log.finished_lsn))
        assert list(verify(LocalFolder(str(tmp_path)))) == []
        for when, paths in told:
            if now_s - when <= 100:
                assert [path for path in paths if not Path(path).exists()] == [], (now_s, when)
    exporter.close()
    assert len(of_hour(tmp_path, "22")) == 1 and not list(tmp_path.glob("_merged/*"))
    assert the_lake.files(str(tmp_path)) == [str(path) for path in parquet_files(tmp_path)]
