"""Kafka's Java client, on which Flink, Kafka Connect and Spark's Kafka source stand, reads the log unmodified."""

import base64
from collections.abc import Iterator

import pytest

from tests.kafka.conftest import VIEW, KafkaBroker, Row, kafka_broker
from tests.kafka.java_client import in_java
from tests.kafka.published import publish_all
from tests.kafka.test_clients import HEADERS, PARTITIONS, PROPERTIES, RECORDS, of_topic
from tests.tries import tries


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """2,000 messages of 50 topics, each tenth of plant/3."""
    data = tmp_path_factory.mktemp("kafka") / "data"
    with kafka_broker(data, "--set", VIEW, "--shards", str(PARTITIONS)) as found:
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
    return next(found for _ in tries() if len(found := broker.rows()) == RECORDS)


@pytest.mark.parametrize("topic", ["main", "tenth"])
def test_it_reads_what_the_log_has(topic: str, broker: KafkaBroker, rows: list[Row]) -> None:
    wanted = of_topic(topic, rows)
    found = in_java("read", broker.address, topic, len(wanted))
    read = [(each["partition"], each["offset"], text(each["key"]).decode(), text(each["value"])) for each in found]
    assert sorted(read) == wanted
    kinds = {tuple((name, text(value)) for name, value in sorted(each["headers"])) for each in found}
    assert kinds == ({(), tuple(sorted(HEADERS))} if topic == "main" else {()})


def text(encoded: str | None) -> bytes:
    return base64.b64decode(encoded or "")


def test_its_admin_client_lists_topics_offsets_and_nodes(broker: KafkaBroker, rows: list[Row]) -> None:
    [seen] = in_java("admin", broker.address, "main")
    ends = [max(lsn for number, lsn, *_ in rows if number == each) + 1 for each in range(PARTITIONS)]
    assert (seen["topics"], seen["offsets"], seen["nodes"]) == (["main", "none", "tenth"], ends, 1)
    assert seen["cluster"].startswith("rumq-")


@pytest.mark.parametrize("idempotent", ["false", "true"])
def test_its_producer_is_refused_by_name(idempotent: str, broker: KafkaBroker, rows: list[Row]) -> None:
    [seen] = in_java("produce", broker.address, "main", enable_idempotence=idempotent)
    assert seen["refused"].startswith(("TopicAuthorizationException", "UnsupportedVersionException")), seen
    assert broker.rows() == rows
