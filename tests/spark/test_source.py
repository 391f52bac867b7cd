"""The log as a table. docs/spark.md."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        shutil.which("java") is None, reason="Java is not installed (openjdk-17-jre-headless)"
    ),
]

from commitlog import RealFiles, open_store  # noqa: E402
from commitlog.streams import StreamSpec  # noqa: E402
from rumq.mqtt.encode import encode  # noqa: E402
from rumq.mqtt.kernels import ingest  # noqa: E402
from rumq.mqtt.packets import Publish  # noqa: E402
from tests.commitlog.records import NOW, write  # noqa: E402


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import rumq.spark

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    rumq.spark.register(session)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 messages of three topics in segments of a few chunks, some of MQTT 5."""
    root = str(tmp_path_factory.mktemp("log") / "data")
    spec = StreamSpec("main", ("#",), segment_bytes_max=30_000)
    store = open_store(RealFiles(), root, [spec], matches=lambda f, t: True, now_us=NOW)
    partition = store.partitions[0]
    wire, batch = ingest.Wire(True, 1 << 20, 65535, 0), ingest.Batch()
    wire.publishers = [partition.add_publisher("device-7")]
    topics: dict[bytes, int] = {}
    for n in range(300):
        properties: Any = (
            {"user_properties": [("n", str(n)), ("n", "again")], "content_type": "x"} if n % 10 == 0 else {}
        )
        qos = n % 2
        packet = Publish(
            f"plant/{n % 3}/temp",
            b"%d" % n,
            qos,
            n == 299,
            packet_id=1 if qos else None,
            properties=properties,
        )
        frame = encode(packet, 5)
        while ingest.cut(wire, [batch], frame, 0, len(frame), topics) == 0:
            topics[wire.topic] = partition.add_topic(wire.topic)
        wire.unacknowledged = 0
        if n % 20 == 19:
            rows, frames, count, flags, _ = batch.take()
            partition.append(rows, frames, count, flags, NOW + n * 1_000_000)
            assert write(partition)
    store.close()
    return root


def test_a_row_a_message_with_every_column(spark: Any, data: str) -> None:
    rows = spark.read.format("rumq").load(data).orderBy("lsn").collect()
    assert [row.lsn for row in rows] == list(range(300))
    assert [bytes(row.payload) for row in rows] == [b"%d" % n for n in range(300)]
    row = rows[10]
    assert (row.topic, row.topic_offset, row.partition, row.qos) == ("plant/1/temp", 3, "main/g1/p0", 0)
    assert (row.client_id, row.content_type, row.retain) == ("device-7", "x", False)
    assert [(p.key, p.value) for p in row.properties] == [("n", "10"), ("n", "again")]
    assert rows[11].properties == [] and rows[11].content_type is None
    assert rows[299].retain


def test_filters_ranges_and_times_choose_rows(spark: Any, data: str) -> None:
    def count(**options: str) -> int:
        return int(spark.read.format("rumq").options(**options).load(data).count())

    assert count(subscribe="plant/1/+") == 100
    assert count(startingOffsets='{"main/g1/p0": 250}') == 50
    assert count(endingOffsets='{"main/g1/p0": 250}', maxRecordsPerPartition="7") == 250
    assert count(startingTimestamp=str((NOW + 99 * 1_000_000) // 1000)) == 220
    assert count(startingOffsets="latest") == 0


def test_a_narrow_schema_reads_those_columns(spark: Any, data: str) -> None:
    rows = spark.read.format("rumq").schema("payload binary, topic string").load(data).collect()
    assert len(rows) == 300 and set(rows[0].asDict()) == {"payload", "topic"}


@pytest.mark.parametrize(
    ("options", "says"),
    [({"speed": "9"}, "expected one of the options"), ({"startingOffsets": "soon"}, "earliest, latest, or JSON"),
     ({"stream": "other"}, "one of the streams: main")],
)  # fmt: skip
def test_a_wrong_option_is_named(spark: Any, data: str, options: dict[str, str], says: str) -> None:
    with pytest.raises(Exception, match=says):
        spark.read.format("rumq").options(**options).load(data).count()


def test_damage_ends_the_query_with_its_range(spark: Any, data: str, tmp_path: Path) -> None:
    copied = tmp_path / "data"
    shutil.copytree(data, copied)
    first = sorted((copied / "main/g1/p0").glob("*.seg"))[0]
    content = bytearray(first.read_bytes())
    content[4096 + 130] ^= 1
    first.write_bytes(content)
    with pytest.raises(Exception, match="records 0 to 19 of main/g1/p0 cannot be read"):
        spark.read.format("rumq").load(str(copied)).count()
    assert spark.read.format("rumq").option("failOnDataLoss", "false").load(str(copied)).count() == 280
