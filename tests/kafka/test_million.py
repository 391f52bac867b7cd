"""A million records: seven clients of Kafka, MQTT, REST and Spark read the same ones under the same numbers."""

from __future__ import annotations

import base64
import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from rumq.client import Outgoing, connect
from tests.cli.conftest import rumqd
from tests.kafka import test_clients
from tests.kafka.conftest import KafkaBroker, Row, kafka_broker
from tests.kafka.java_client import each_in_java
from tests.kafka.node_client import lines_of_node
from tests.kafka.test_clients import PARTITIONS, by_aiokafka, by_confluent, by_kafka_python, by_kcat

RECORDS, BATCH = 1_000_000, 10_000
SECONDS = 300.0  # of one reader
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A data directory, and a token of its gateway."""
    data = tmp_path_factory.mktemp("kafka") / "data"
    made = rumqd("token", "add", "reader", "--role", "read", "--data", str(data))
    assert made.status == 0, made.err
    return data, made.out.strip()


@pytest.fixture(scope="module")
def broker(token: tuple[Path, str]) -> Iterator[KafkaBroker]:
    flags = ("--shards", str(PARTITIONS), "--set", "gateway.port=-1", "--set", "gateway.host=127.0.0.1")
    with kafka_broker(token[0], *flags) as found:

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


def by_java(address: str, topic: str, wanted: int) -> list[Row]:
    return [
        (each["partition"], each["offset"], text(each["key"]).decode(), text(each["value"]))
        for each in each_in_java("read", address, topic, wanted, seconds_max=SECONDS)
    ]


@pytest.mark.parametrize("read", [by_confluent, by_kcat, by_aiokafka, by_kafka_python, by_java])
def test_a_client_of_kafka(read: Any, broker: KafkaBroker, rows: list[Row], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_clients, "SECONDS", SECONDS)
    assert sorted(read(broker.address, "main", RECORDS)) == rows


@pytest.mark.node
@pytest.mark.parametrize("script", ["kafkajs_read.mjs", "platformatic_read.mjs"])
def test_a_client_of_node(script: str, broker: KafkaBroker, rows: list[Row]) -> None:
    lines = lines_of_node(script, broker.address, str(RECORDS), seconds_max=SECONDS)
    words = (line.split(" ") for line in lines)
    assert sorted((int(each[0]), int(each[1]), each[2], text(each[3])) for each in words) == rows


def test_a_replay_over_mqtt(broker: KafkaBroker, rows: list[Row]) -> None:
    async def replayed() -> list[Row]:
        async with connect(broker.process.address.host, broker.process.address.port) as client:
            return [(number(m.partition), m.lsn, m.topic, m.payload) async for m in client.replay("#")]

    assert sorted(trio.run(replayed)) == rows


@pytest.mark.parametrize("kind", ["application/json", "application/msgpack"])
def test_pages_over_rest(kind: str, broker: KafkaBroker, token: tuple[Path, str], rows: list[Row]) -> None:
    """A thousand records a page, each from the cursor of the one before."""
    bound = next(each for each in broker.process.named("listener.bound") if each["protocol"] == "http")
    headers = {"authorization": f"Bearer {token[1]}", "accept": kind}
    connection = http.client.HTTPConnection("127.0.0.1", bound["port"], timeout=SECONDS)
    found: list[Row] = []
    page: dict[str, Any] = {"cursor": "", "more": True}
    while page["more"]:
        path = f"/api/v1/records?topic=plant/%23&limit=1000&cursor={page['cursor']}"
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        assert response.headers["content-type"].startswith(kind)
        page = msgspec.json.decode(body) if kind.endswith("json") else msgspec.msgpack.decode(body)
        assert page["lost"] == 0
        for each in page["records"]:
            payload = each["payload"] if each["encoding"] == "bytes" else each["payload"].encode()
            found.append((number(each["partition"]), each["lsn"], each["topic"], payload))
    connection.close()
    assert sorted(found) == rows


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


def text(encoded: str) -> bytes:
    return base64.b64decode(encoded)


def number(partition: object) -> int:
    """Of main/g1/p3: 3."""
    return int(str(partition).rpartition("p")[2])
