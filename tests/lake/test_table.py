"""The lake as a Delta table, read by a library that knows nothing of rumq. docs/guides/lake.md, "As a table"."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow as pa
from deltalake import DeltaTable

from rumq.cli.analytics import lake_table
from rumq.lake.folder import LocalFolder
from rumq.lake.parquet.export import Exporter
from rumq.lake.table import register
from tests.cli.conftest import rumqd
from tests.lake.lakes import HOUR, MADE_NOW, Log, exported, rows_in

NOW_MS = 1_790_000_000_000


@pytest.fixture
def log() -> Log:
    made = Log()
    made.fill(9)
    made.fill(4, ts=MADE_NOW + HOUR, first=9)
    return made


@pytest.fixture
def exporter(log: Log, tmp_path: Path) -> Iterator[Exporter]:
    made = Exporter(log.files, "data", LocalFolder(str(tmp_path)))
    made.run()
    yield made
    made.close()


def lsns(to: Path, version: int | None = None) -> list[int]:
    return sorted(DeltaTable(str(to), version).to_pyarrow_table(columns=["lsn"])["lsn"].to_pylist())


def commit(to: Path, version: int) -> list[str]:
    return (to / f"_delta_log/{version:020d}.json").read_text().splitlines()


def test_the_table_has_each_record_once_with_every_column(log: Log, exporter: Exporter, tmp_path: Path) -> None:
    register(LocalFolder(str(tmp_path)), NOW_MS)
    table = DeltaTable(str(tmp_path)).to_pyarrow_table().sort_by("lsn")
    rows = rows_in(tmp_path)
    assert table.select(rows.schema.names).cast(rows.schema).equals(rows)
    assert set(table["hr"].to_pylist()) == {22, 23} and str(table["dt"][0]) == "2023-11-14"
    late = DeltaTable(str(tmp_path)).to_pyarrow_table(filters=[("hr", "=", 23)])
    assert 0 < len(late) < len(table) and pa.compute.min(late["ts"]).value == MADE_NOW + HOUR


def test_it_follows_exports_and_merges_and_knows_what_it_was(log: Log, exporter: Exporter, tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path))
    first, new = register(folder, NOW_MS)
    assert new == first + 1 and register(folder, NOW_MS) == (first, 0)
    before = lsns(tmp_path)
    for now_s in (1000, 1100, 1200):
        exporter.merge(1 << 40, now_s=now_s, keep_s=100)
        register(folder, NOW_MS)
        assert lsns(tmp_path) == before == list(range(log.finished_lsn))
    assert len(DeltaTable(str(tmp_path)).file_uris()) == 2
    shown, _ = register(folder, NOW_MS)
    moved = [json.loads(line) for at in range(first + 1, shown + 1) for line in commit(tmp_path, at)]
    changes = {action[kind]["dataChange"] for action in moved for kind in ("add", "remove") if kind in action}
    assert changes == {False}, "who follows the table sees nothing anew"
    log.fill(5, first=13, ts=MADE_NOW + HOUR)
    exporter.run()
    last, new = register(folder, NOW_MS)
    assert new == 1 and lsns(tmp_path) == list(range(log.finished_lsn)) > before
    assert lsns(tmp_path, last - 1) == before


def test_a_registration_that_stopped_goes_on(log: Log, exporter: Exporter, tmp_path: Path) -> None:
    last, _ = register(LocalFolder(str(tmp_path)), NOW_MS)
    for path in sorted((tmp_path / "_delta_log").glob("*.json"))[1:]:
        path.unlink()
    assert register(LocalFolder(str(tmp_path)), NOW_MS) == (last, last)
    assert lsns(tmp_path) == list(range(log.finished_lsn))


def test_the_command(log: Log, tmp_path: Path) -> None:
    exported(log, tmp_path / "lake")
    done = rumqd("lake", "table", "delta", str(tmp_path / "lake"))
    assert (done.status, done.out) == (0, "version 2, 3 new\n"), done.err
    assert rumqd("lake", "table", "delta", str(tmp_path)).status == 1
    assert lsns(tmp_path / "lake") == list(range(log.finished_lsn))


def test_a_long_log_gets_checkpoints(
    log: Log, exporter: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake_table, "CHECKPOINT_VERSIONS", 4)
    lake_table.register_table(str(tmp_path))
    assert not list(tmp_path.glob("_delta_log/*checkpoint*"))
    exporter.merge(1 << 40)
    lake_table.register_table(str(tmp_path))
    assert list(tmp_path.glob("_delta_log/*checkpoint*"))
    (tmp_path / f"_delta_log/{0:020d}.json").unlink()
    assert lsns(tmp_path) == list(range(log.finished_lsn))
    assert register(LocalFolder(str(tmp_path)), NOW_MS)[1] == 0
