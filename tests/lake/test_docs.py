"""docs/lake.md runs as it is written: DuckDB, Polars and pyarrow on the files, without Spark and without a broker."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

from rumq.lake.export import Exporter
from rumq.lake.folder import LocalFolder
from rumq.mqtt.packets import Publish
from tests.lake.lakes import Log

DOCUMENT = Path(__file__).parents[2] / "docs" / "lake.md"


def test_every_block_runs_and_sees_each_record_once(tmp_path: Path) -> None:
    log = Log()
    log.fill(7)
    log.damage(0, 1)
    log.publish(*(Publish("plant/7/temp", b"%d" % n) for n in range(30)))
    log.fill(7, first=7)
    to = tmp_path / "lake"
    exporter = Exporter(log.files, "data", LocalFolder(str(to)))
    exporter.run()
    # Some files are merged, and not shown yet.
    exporter.merge(1 << 40, 3 * 12_000, now_s=1000, keep_s=100)
    exporter.close()
    assert list(to.glob("_merged/*.parquet"))

    names: dict[str, Any] = {}
    results: list[Any] = []
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    assert len(blocks) == 4
    for block in blocks:
        *lines, last = block.replace('"lake', f'"{to}').strip().splitlines()
        name, assigned, _ = last.partition(" = ")
        exec("\n".join([*lines, last if assigned else f"result = {last}"]), names)
        results.append(names[name] if assigned else names["result"])
    by_topic, of_polars, of_arrow, gaps = results
    counts = {topic: count for topic, count, _ in by_topic.fetchall()}
    (gap,) = gaps.to_pylist()
    assert sum(counts.values()) == log.finished_lsn - (gap["next_lsn"] - gap["base_lsn"])
    assert counts["plant/7/temp"] == len(of_polars) == len(of_arrow) == 30
    assert sorted(of_polars["payload"]) == sorted(of_arrow["payload"].to_pylist())
