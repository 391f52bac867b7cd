"""docs/guides/spark.md runs as it is written."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rumq.cli.main import main
from tests.broker_process import Rumqd
from tests.spark.logs import SECOND_US, Publisher, message, store_at

pytestmark = pytest.mark.spark
DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "spark.md"
HOURS = 36


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Rumqd]:
    """With two cities' temperatures, as examples/readings.py publishes them."""
    from tests.commitlog.records import NOW

    store = store_at(str(tmp_path / "rumq-data"), segment_bytes_max=1 << 20)
    for number, city in enumerate(("seattle", "san-francisco")):
        readings = [
            message(
                f"weather/{city}/temperature",
                json.dumps({"time": f"2010-01-0{1 + n // 24}T{n % 24:02}:00:00", "celsius": n + 0.5}).encode(),
                1,
            )
            for n in range(HOURS)
        ]
        Publisher(store.own[0], f"station-{city}").chunk(readings, NOW + number * SECOND_US)
    store.close()
    made = Rumqd(tmp_path / "rumq-data", "--set", "flight.port=-1", "--set", "flight.host=127.0.0.1")
    made.start()
    yield made
    made.end()


def test_every_block_runs_and_does_what_it_says(
    spark: Any, broker: Rumqd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(tmp_path / "rumq-data")
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    assert len(blocks) == 11
    flight = broker.event("listener.bound", number=2)
    for block in blocks:
        # Spark's JVM has a working directory of its own, and the broker of a test a port of its own.
        placed = re.sub(r'"((?:rumq-data|checkpoints|archive)[\w/-]*)"', rf'"{tmp_path}/\1"', block)
        placed = placed.replace("localhost:8815", f"127.0.0.1:{flight['port']}")
        exec(placed.replace("localhost:1883", f"{broker.address.host}:{broker.address.port}"), names)
    names["spark"].streams.removeListener(names["listener"])
    assert names["df"].count() >= 2 * HOURS
    assert names["table"].num_rows == 2 * HOURS == names["history"].count()
    assert spark.read.parquet(f"{tmp_path}/archive").count() == 2 * HOURS
    assert not names["query"].exception()
    commands = [
        shlex.split(command.replace("\\\n", " "), comments=True)
        for block in re.findall(r"^```sh\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
        for command in re.findall(r"^rumqd (spark run (?:.*\\\n)*.*)$", block, re.M)
    ]
    assert len(commands) == 4
    monkeypatch.chdir(tmp_path)
    for command in commands:
        address = f"{broker.address.host}:{broker.address.port}"
        placed = [re.sub("^(?=exported)", f"{tmp_path}/", word) for word in command]
        placed = [word.replace("localhost:1883", address) for word in placed]
        assert main(placed + (["--data", data, "--master", "local[2]"] if len(placed) > 3 else [])) == 0
    assert spark.read.parquet(f"{tmp_path}/exported").count() >= 2 * HOURS
    broker.stop()
    hours = spark.read.format("rumq").option("subscribe", "weather/+/six-hours,days/+").load(data).collect()
    counts = Counter((row.topic, json.loads(row.payload)["count"]) for row in hours)
    assert counts == {
        ("weather/seattle/six-hours", 6): 5, ("weather/san-francisco/six-hours", 6): 5,
        ("days/seattle", 24): 1, ("days/seattle", 12): 1, ("days/san-francisco", 24): 1, ("days/san-francisco", 12): 1,
    }  # fmt: skip
    assert spark.read.format("rumq").option("subscribe", "copy/#").load(data).count() == 2 * HOURS
    published = spark.read.format("rumq").option("subscribe", "weather/+/daily").load(data).collect()
    said = [(row.topic.split("/")[1], json.loads(row.payload)) for row in published]
    assert sorted((city, day["day"], day["mean"]) for city, day in said) == [
        ("san-francisco", "2010-01-01", 12.0), ("san-francisco", "2010-01-02", 30.0),
        ("seattle", "2010-01-01", 12.0), ("seattle", "2010-01-02", 30.0),
    ]  # fmt: skip
