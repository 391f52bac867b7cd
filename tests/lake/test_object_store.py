"""A lake in a real object store: written, merged, checked, and read by the names that `rumq.lake.files` gives.
docs/guides/lake.md, "In an object store"."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import rumq.lake
from rumq.lake.folder import LocalFolder, folder_at
from rumq.lake.lake_reader import Lake, read
from rumq.lake.manifest import LakeManifest
from rumq.lake.parquet.export import Exporter
from rumq.lake.parquet.verify import verify
from rumq.mqtt.packets import Publish
from tests.cli.conftest import ENVIRONMENT
from tests.lake.lakes import Log
from tests.lake.object_store import object_store

pytestmark = pytest.mark.seaweedfs
DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "lake.md"
ASKED = """
print(json.dumps([results[0]["payload"].to_list().__len__(), {t: n for t, n, _ in results[1].fetchall()}]))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with object_store(tmp_path_factory.mktemp("objects")) as found:
        yield found


@pytest.fixture(autouse=True)
def s3(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def log() -> Log:
    made = Log()
    made.fill(7)
    made.publish(*(Publish("plant/7/temp", b"%d" % n) for n in range(30)))
    made.fill(7, first=7)
    return made


def test_what_is_exported_and_merged_is_read_and_checked(environment: dict[str, str]) -> None:
    made = log()
    place = "s3://bucket/checked"
    exporter = Exporter(made.files, "data", folder_at(place))
    exporter.run()
    for now_s in (1000, 1100, 1200):
        exporter.merge(1 << 40, now_s=now_s, keep_s=100)
        lake = Lake(folder_at(place), LakeManifest(folder_at(place)))
        tables = list(read(lake, "main/g1/p0", 5, 200, ["lsn"]))
        assert [lsn for table in tables for lsn in table["lsn"].to_pylist()] == list(range(5, 200))
        assert list(verify(folder_at(place))) == []
    endpoint = environment["AWS_ENDPOINT_URL"].removeprefix("http://")
    with_options = f"{place}?scheme=http&endpoint_override={endpoint}&region=us-east-1"
    names = rumq.lake.files(with_options)
    assert names == rumq.lake.files(place)
    assert all(name.startswith("s3://bucket/checked/stream=main/") for name in names) and names


def test_the_blocks_of_the_document_run_as_they_are_written(tmp_path: Path) -> None:
    for each in ("duckdb", "polars"):
        pytest.importorskip(each)
    made = log()
    Exporter(made.files, "data", folder_at("s3://bucket/lake")).run()
    blocks = [
        block for block in re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S) if "s3://" in block
    ]
    assert len(blocks) == 2
    script = ["import json", "results = []"]
    for block in blocks:
        *lines, last = block.strip().splitlines()
        script += [*lines, f"results.append({last})"]
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join([*script, ASKED])],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        env={**ENVIRONMENT, **{n: v for n, v in os.environ.items() if n.startswith("AWS_")}, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    count, by_topic = json.loads(ended.stdout)
    assert count == 30 == by_topic["plant/7/temp"]
    assert sum(by_topic.values()) == made.finished_lsn


def test_the_format_reads_from_there_what_retention_took(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from rumq.spark.source.data_source import RumqReader
    from rumq.spark.source.schema import schema_of
    from rumq.table.options import parse
    from tests.spark.histories import History

    history = History(tmp_path)
    history.publish(60)
    exporter = Exporter(history.store._files, history.data, folder_at("s3://bucket/history"), marks=True)
    exporter.run()
    exporter.close()
    history.remove(1)
    history.close()
    options = parse({"path": history.data, "lake": "s3://bucket/history"}, now_us=0)
    reader = RumqReader(options, schema_of(options))
    found = [lsn for part in reader.partitions() for batch in reader.read(part) for lsn in batch["lsn"].to_pylist()]
    assert sorted(found) == sorted([*range(600)] * 2)


def test_a_local_lake_has_paths(tmp_path: Path) -> None:
    Exporter(log().files, "data", LocalFolder(str(tmp_path / "lake"))).run()
    names = rumq.lake.files(str(tmp_path / "lake"))
    assert names and all(Path(name).is_file() for name in names)
