"""A lake in a store that pyarrow reaches, as far as that can be seen here: a file system of pyarrow stands for it."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

from pyarrow import fs

from rumq.lake.errors import LakeError
from rumq.lake.folder import LocalFolder, RemoteFolder, folder_at
from rumq.lake.lake_reader import Lake, find_time, read
from rumq.lake.manifest import LakeManifest
from rumq.lake.parquet.export import Exporter
from rumq.lake.parquet.verify import verify
from rumq.lake.table import next_version, register
from tests.commitlog.records import mark
from tests.lake.lakes import HOUR, MADE_NOW, Crash, Log, crash_at, lsns_in

P0 = "main/g1/p0"


def store(root: Path) -> Any:
    root.mkdir(exist_ok=True)
    return RemoteFolder("s3://bucket/lake", fs.SubTreeFileSystem(str(root), fs.LocalFileSystem()), "bucket/lake")


def test_it_is_exported_merged_read_and_checked_like_a_folder(tmp_path: Path) -> None:
    log = Log()
    log.fill(9)
    log.fill(5, ts=MADE_NOW + HOUR, first=9)
    folder = store(tmp_path)
    exporter = Exporter(log.files, "data", folder)
    exporter.run()
    wanted = [n for n in range(5, 200) if n % 5 != 3]
    for now_s in (1000, 1100, 1200):
        exporter.merge(1 << 40, now_s=now_s, keep_s=100)
        lake = Lake(folder, LakeManifest(folder))
        tables = list(read(lake, P0, 5, 200, ["lsn", "topic"], wants=lambda topic: topic != "plant/3/temp"))
        assert [lsn for table in tables for lsn in table["lsn"].to_pylist()] == wanted
        assert find_time(lake, P0, MADE_NOW + HOUR, 1 << 40) == 180
        assert lsns_in(tmp_path / "bucket/lake") == list(range(log.finished_lsn))
        assert list(verify(store(tmp_path))) == []
    assert register(folder, 0)[0] == next_version(folder) - 1 > 3


def test_a_writer_that_stops_at_any_step_is_gone_on_with(tmp_path: Path) -> None:
    log = Log()
    log.fill(9)
    steps: list[str] = []
    whole = Exporter(log.files, "data", store(tmp_path / "0"), step=crash_at(0, steps))
    whole.run()
    whole.merge(1 << 40)

    def crash(folder: Any, number: int) -> None:
        stopping = Exporter(log.files, "data", folder, step=crash_at(number, []))
        stopping.run()
        stopping.merge(1 << 40)

    for number in range(1, len(steps) + 1):
        folder = store(tmp_path / str(number))
        with pytest.raises(Crash):
            crash(folder, number)
        again = Exporter(log.files, "data", folder)
        again.run()
        again.merge(1 << 40)
        assert lsns_in(tmp_path / str(number) / "bucket/lake") == list(range(log.finished_lsn))
        assert list(verify(folder)) == []


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("s3://bucket/lake", "s3://bucket/lake/a/b.parquet"),
        ("s3://bucket/lake/?endpoint_override=h:1&scheme=http", "s3://bucket/lake/a/b.parquet"),
        ("gs://bucket", "gs://bucket/a/b.parquet"),
        ("hdfs://node:8020/x/lake", "hdfs://node:8020/x/lake/a/b.parquet"),
        (
            "abfss://container@account.dfs.core.windows.net/lake",
            "abfss://container@account.dfs.core.windows.net/lake/a/b.parquet",
        ),
    ],
)
def test_other_readers_are_told_names_with_their_scheme(place: str, name: str) -> None:
    assert RemoteFolder(place, None, "bucket/lake").name("a/b.parquet") == name
    assert LocalFolder("/x/lake").name("a/b.parquet") == "/x/lake/a/b.parquet"


@pytest.mark.parametrize(
    "place", ["s3://key:hidden@bucket/lake", "abfs://c@a.dfs.core.windows.net/lake?account_key=hidden"]
)
def test_a_uri_with_a_secret_is_refused_without_repeating_it(place: str) -> None:
    with pytest.raises(LakeError, match="AWS_SECRET_ACCESS_KEY") as caught:
        folder_at(place)
    assert "hidden" not in str(caught.value)


def test_two_exporters_of_one_store_leave_no_hole_and_nothing_twice(tmp_path: Path) -> None:
    """In a cluster the one of an earlier leader may live on for a moment: it finds the line of the other."""
    log = Log()
    log.fill(5)
    earlier = Exporter(log.files, "data", store(tmp_path))
    earlier.run()
    log.fill(4, first=5)
    later = Exporter(log.files, "data", store(tmp_path))
    assert later.run().segments == 1
    log.fill(4, first=9)
    with pytest.raises(LakeError, match="another process has exported to it"):
        earlier.run()
    Exporter(log.files, "data", store(tmp_path)).run()
    with pytest.raises(LakeError, match="another process has exported to it"):
        later.merge(1 << 40)
    assert lsns_in(tmp_path / "bucket/lake") == list(range(log.finished_lsn))
    assert [found for found in verify(store(tmp_path)) if found.severity == "error"] == []


def test_in_a_cluster_a_segment_is_exported_once_a_mark_says_that_it_is_committed(tmp_path: Path) -> None:
    """What is behind the marks of a copy may be cut when another node leads."""
    log = Log()
    log.partition.replicated_lsn = 0
    log.files.put("data/_cluster", b"")
    log.fill(9)
    exporter = Exporter(log.files, "data", store(tmp_path))
    assert exporter.run().segments == 0 and exporter.awaits_mark
    log.partition.note_replicated(100)
    mark(log.partition)
    assert exporter.run().segments == 1 and exporter.awaits_mark
    log.partition.note_replicated(180)
    mark(log.partition)
    exporter.run()
    assert not exporter.awaits_mark
    assert lsns_in(tmp_path / "bucket/lake") == list(range(log.finished_lsn))
