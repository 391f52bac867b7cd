"""docs/spark.md runs as it is written."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker_process import Rumqd
from tests.spark.logs import SECOND_US, Publisher, message, store_at

pytestmark = pytest.mark.spark
DOCUMENT = Path(__file__).parents[2] / "docs" / "spark.md"
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
                json.dumps(
                    {"time": f"2010-01-0{1 + n // 24}T{n % 24:02}:00:00", "celsius": n + 0.5}
                ).encode(),
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


def test_every_block_runs_and_does_what_it_says(spark: Any, broker: Rumqd, tmp_path: Path) -> None:
    data = str(tmp_path / "rumq-data")
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.M | re.S)
    assert len(blocks) == 7
    flight = broker.event("listener.bound", number=2)
    for block in blocks:
        # Spark's JVM has a working directory of its own, and the broker of a test a port of its own.
        placed = re.sub(r'"((?:rumq-data|checkpoints|archive)[\w/-]*)"', rf'"{tmp_path}/\1"', block)
        placed = placed.replace("localhost:8815", f"127.0.0.1:{flight['port']}")
        exec(placed.replace("localhost:1883", f"{broker.address.host}:{broker.address.port}"), names)
    assert names["df"].count() >= 2 * HOURS
    assert names["table"].num_rows == 2 * HOURS == names["history"].count()
    assert spark.read.parquet(f"{tmp_path}/archive").count() == 2 * HOURS
    broker.stop()
    published = spark.read.format("rumq").option("subscribe", "weather/+/daily").load(data).collect()
    said = [(row.topic.split("/")[1], json.loads(row.payload)) for row in published]
    assert sorted((city, day["day"], day["mean"]) for city, day in said) == [
        ("san-francisco", "2010-01-01", 12.0), ("san-francisco", "2010-01-02", 30.0),
        ("seattle", "2010-01-01", 12.0), ("seattle", "2010-01-02", 30.0),
    ]  # fmt: skip
