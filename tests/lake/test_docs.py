"""docs/guides/lake.md runs as it is written: DuckDB, Polars and pyarrow on the files, without Spark and without a
broker."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

from rumq.lake.folder import LocalFolder
from rumq.lake.parquet.export import Exporter
from rumq.mqtt.packets import Publish
from tests.cli.conftest import ENVIRONMENT
from tests.lake.lakes import Log

# What the four blocks came to, as JSON.
ASKED = """
by_topic, of_polars, of_arrow, gaps = results
counts = {topic: count for topic, count, _ in by_topic.fetchall()}
payloads = [of_polars["payload"].to_list(), of_arrow["payload"].to_pylist()]
print(json.dumps([counts, *(sorted(map(bytes.decode, each)) for each in payloads), gaps.to_pylist()]))
"""
DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "lake.md"


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

    # Those of an object store run beside one: test_s3.py.
    found = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    blocks = [block for block in found if "s3://" not in block]
    assert len(blocks) == 4
    script = ["import json", "results = []"]
    for block in blocks:
        *lines, last = block.strip().splitlines()
        name, assigned, _ = last.partition(" = ")
        script += [*lines, *([last, f"results.append({name})"] if assigned else [f"results.append({last})"])]
    # A process of its own: it is as it is written, and what libraries say when they end is theirs.
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join([*script, ASKED])],
        cwd=tmp_path, capture_output=True, text=True, env={**ENVIRONMENT, "PYTHONPATH": os.getcwd()}, timeout=60,
        check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    counts, of_polars, of_arrow, (gap,) = json.loads(ended.stdout)
    assert sum(counts.values()) == log.finished_lsn - (gap["next_lsn"] - gap["base_lsn"])
    assert counts["plant/7/temp"] == len(of_polars) == len(of_arrow) == 30
    assert of_polars == of_arrow == sorted(str(n) for n in range(30))
