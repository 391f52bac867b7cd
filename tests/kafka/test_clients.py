"""Clients of Kafka as their makers ship them read what was published over MQTT: the same records, at the same offsets.

Those that are not installed are skipped. kafkajs and @platformatic/kafka read in groups only: `test_groups`."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.kafka.conftest import VIEW, KafkaBroker, Row, kafka_broker
from tests.kafka.node_client import in_node
from tests.kafka.published import publish_all
from tests.tries import tries

RECORDS, PARTITIONS = 2_000, 2
SECONDS = 60.0
PROPERTIES: dict[str, Any] = {"user_properties": [("site", "berlin"), ("site", "again")], "content_type": "text/plain"}
HEADERS = [("site", b"berlin"), ("site", b"again"), ("content-type", b"text/plain")]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """2,000 messages of 50 topics, each tenth of plant/3."""
    flags = ("--set", VIEW, "--set", "flight.port=-1", "--set", "flight.host=127.0.0.1", "--shards", str(PARTITIONS))
    with kafka_broker(tmp_path_factory.mktemp("kafka") / "data", *flags) as found:
        publish_all(
            found.process.address,
            [
                (f"plant/{n % 10}/{n % 50}", b"%d" % n if n % 7 else b"", PROPERTIES if n % 5 == 0 else {})
                for n in range(RECORDS)
            ],
        )
        yield found


@pytest.fixture(scope="module")
def rows(broker: KafkaBroker) -> list[Row]:
    """As the log's own reader finds them, once the files prove them all."""
    found: list[Row] = []
    while len(found) < RECORDS:  # the broker's mark comes 50 ms after the last record
        found = broker.rows()
    return found


def of_topic(topic: str, rows: list[Row]) -> list[Row]:
    return [row for row in rows if topic == "main" or (topic == "tenth" and row[2].startswith("plant/3/"))]


def module(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed (pip install 'rumq[dev]')")


def by_confluent(address: str, topic: str, wanted: int) -> list[Row]:
    kafka = module("confluent_kafka")
    consumer = kafka.Consumer({"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([kafka.TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    found: list[Row] = []
    for _ in tries(SECONDS):
        for each in consumer.consume(500, 0.5):
            if each.error() is None:
                found.append((each.partition(), each.offset(), each.key().decode(), each.value()))
                check_headers(each.headers())
        if len(found) >= wanted:
            break
    consumer.close()
    return found


def by_aiokafka(address: str, topic: str, wanted: int) -> list[Row]:
    kafka = module("aiokafka")

    async def run() -> list[Row]:
        consumer = kafka.AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest")
        await consumer.start()
        try:
            consumer.assign([kafka.TopicPartition(topic, each) for each in range(PARTITIONS)])
            found: list[Row] = []
            while len(found) < wanted:
                for some in (await consumer.getmany(timeout_ms=1000)).values():
                    found += [taken(each) for each in some]
            return found
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(run(), SECONDS))


def by_kafka_python(address: str, topic: str, wanted: int) -> list[Row]:
    kafka = module("kafka")
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=address, auto_offset_reset="earliest", group_id=None, consumer_timeout_ms=SECONDS * 1000
    )
    consumer.assign([kafka.TopicPartition(topic, each) for each in range(PARTITIONS)])
    found = [taken(each) for _, each in zip(range(wanted), consumer, strict=False)]
    consumer.close()
    return found


def taken(each: Any) -> Row:
    """A record of aiokafka or kafka-python."""
    check_headers(list(each.headers))
    return each.partition, each.offset, each.key.decode(), each.value


def check_headers(headers: list[tuple[str, bytes]] | None) -> None:
    assert sorted(headers or []) in ([], sorted(HEADERS))


def by_kcat(address: str, topic: str, wanted: int) -> list[Row]:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed (apt install kcat)")
    command = ["kcat", "-b", address, "-C", "-q", "-t", topic, "-o", "beginning", "-e", "-J"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    lines = map(json.loads, done.stdout.splitlines())
    return [(each["partition"], each["offset"], each["key"], (each["payload"] or "").encode()) for each in lines]


CLIENTS = [by_confluent, by_aiokafka, by_kafka_python, by_kcat]


@pytest.mark.parametrize("topic", ["main", "tenth"])
@pytest.mark.parametrize("read", CLIENTS)
def test_a_client_reads_what_the_log_has(
    read: Callable[[str, str, int], list[Row]], topic: str, broker: KafkaBroker, rows: list[Row]
) -> None:
    wanted = of_topic(topic, rows)
    assert len(wanted) == (RECORDS if topic == "main" else RECORDS // 10)
    assert sorted(read(broker.address, topic, len(wanted))) == wanted


def test_flight_gives_the_same_records_the_same_numbers(broker: KafkaBroker, rows: list[Row]) -> None:
    """`lsn` of Flight and Spark is the offset of Kafka."""
    bound = next(each for each in broker.process.named("listener.bound") if each["protocol"] == "flight")
    fl = pytest.importorskip("pyarrow.flight", reason="pyarrow is not installed (pip install 'rumq[flight]')")
    found: list[Row] = []
    with fl.connect(f"grpc://127.0.0.1:{bound['port']}") as flight:
        command = json.dumps({"columns": ["partition", "lsn", "topic", "payload"]})
        for each in flight.get_flight_info(fl.FlightDescriptor.for_command(command)).endpoints:
            for row in flight.do_get(each.ticket).read_all().to_pylist():
                number = int(str(row["partition"]).rpartition("p")[2])
                found.append((number, row["lsn"], row["topic"], row["payload"]))
    assert sorted(found) == rows


def test_a_time_leads_to_the_first_record_at_or_after_it(broker: KafkaBroker, rows: list[Row]) -> None:
    kafka = module("confluent_kafka")
    consumer = kafka.Consumer({"bootstrap.servers": broker.address, "group.id": "none"})
    ends = [max(lsn for number, lsn, *_ in rows if number == each) + 1 for each in range(PARTITIONS)]
    for when, wanted in ((0, [0] * PARTITIONS), (1 << 42, [-1] * PARTITIONS)):
        asked = [kafka.TopicPartition("main", each, when) for each in range(PARTITIONS)]
        found = consumer.offsets_for_times(asked, timeout=SECONDS)
        assert [each.offset for each in found] == wanted
    for each, end in enumerate(ends):
        partition = kafka.TopicPartition("main", each)
        assert consumer.get_watermark_offsets(partition, timeout=SECONDS) == (0, end)
    consumer.close()


def test_a_producer_is_refused_in_words_that_the_client_shows(broker: KafkaBroker, rows: list[Row]) -> None:
    kafka = module("confluent_kafka")
    told = []
    producer = kafka.Producer({"bootstrap.servers": broker.address})
    producer.produce("main", b"x", partition=0, on_delivery=lambda fault, _: told.append(fault))
    producer.flush(SECONDS)
    assert [each.code() for each in told] == [kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert broker.rows() == rows


def test_an_idempotent_producer_is_told_that_it_cannot_be_served(broker: KafkaBroker) -> None:
    kafka = module("confluent_kafka")
    producer = kafka.Producer({"bootstrap.servers": broker.address, "enable.idempotence": True})
    producer.produce("main", b"x", partition=0)
    with pytest.raises(kafka.KafkaException, match="Idempotent producer not supported"):
        producer.flush(SECONDS)


def test_the_tools_of_an_admin_are_answered(broker: KafkaBroker) -> None:
    admin = module("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": broker.address})
    listed = client.list_topics(timeout=SECONDS)
    assert {name: len(each.partitions) for name, each in listed.topics.items()} == dict.fromkeys(
        ("main", "tenth", "none"), PARTITIONS
    )
    resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, "tenth")
    [described] = client.describe_configs([resource]).values()
    assert described.result(SECONDS)["cleanup.policy"].value == "delete"
    cluster = client.describe_cluster().result(SECONDS)
    assert cluster.cluster_id.startswith("rumq-") and [each.id for each in cluster.nodes] == [1]


@pytest.mark.node
def test_kafkajs_lists_topics_and_offsets(broker: KafkaBroker, rows: list[Row]) -> None:
    seen = in_node("kafkajs_admin.mjs", broker.address)
    assert sorted(seen["topics"]) == ["main", "none", "tenth"]
    ends = [max(lsn for number, lsn, *_ in rows if number == each) + 1 for each in range(PARTITIONS)]
    assert {each["partition"]: (int(each["low"]), int(each["high"])) for each in seen["offsets"]} == {
        number: (0, end) for number, end in enumerate(ends)
    }


@pytest.mark.node
def test_platformatic_lists_topics(broker: KafkaBroker) -> None:
    seen = in_node("platformatic_admin.mjs", broker.address)
    assert sorted(seen["topics"]) == ["main", "none", "tenth"]
