"""A million records: Kafka's clients, MQTT and Spark read the same ones under the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio

from rumq.client import Outgoing, connect
from tests.kafka import test_clients
from tests.kafka.conftest import KafkaBroker, Row, kafka_broker
from tests.kafka.test_clients import PARTITIONS, by_aiokafka, by_confluent, by_kafka_python, by_kcat

RECORDS, BATCH = 1_000_000, 10_000
SECONDS = 300.0  # of one reader
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with kafka_broker(tmp_path_factory.mktemp("kafka") / "data", "--shards", str(PARTITIONS)) as found:

        async def publish() -> None:
            async with connect(found.process.address.host, found.process.address.port) as client:
                for first in range(0, RECORDS, BATCH):
                    numbers = range(first, first + BATCH)
                    await client.publish_batch([Outgoing(f"plant/{n % 10}/{n % 50}", b"%d" % n, 1) for n in numbers])

        trio.run(publish)
        yield found


@pytest.fixture(scope="module")
def rows(broker: KafkaBroker) -> list[Row]:
    """As the log's own reader finds them."""
    found: list[Row] = []
    while len(found) < RECORDS:
        found = broker.rows()
    return found


@pytest.mark.parametrize("read", [by_confluent, by_kcat, by_aiokafka, by_kafka_python])
def test_a_client_of_kafka(read: Any, broker: KafkaBroker, rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_clients, "SECONDS", SECONDS)
    assert sorted(read(broker.address, "main", RECORDS)) == rows


def test_a_replay_over_mqtt(broker: KafkaBroker, rows: list[Row]) -> None:
    async def replayed() -> list[Row]:
        async with connect(broker.process.address.host, broker.process.address.port) as client:
            return [(number(m.partition), m.lsn, m.topic, m.payload) async for m in client.replay("#")]

    assert sorted(trio.run(replayed)) == rows


def test_a_table_of_spark(broker: KafkaBroker, rows: list[Row]) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
    import rumq.spark

    spark = rumq.spark.session("a million", "local[2]", spark_ui_enabled="false")
    try:
        table = spark.read.format("rumq").load(str(broker.process.data)).where("topic like 'plant/%'")
        found = table.select("partition", "lsn", "topic", "payload").collect()
    finally:
        spark.stop()
    assert sorted((number(each[0]), each[1], each[2], bytes(each[3])) for each in found) == rows


def number(partition: object) -> int:
    """Of main/g1/p3: 3."""
    return int(str(partition).rpartition("p")[2])
