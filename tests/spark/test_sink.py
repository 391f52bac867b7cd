"""Rows of Spark as messages of a broker. docs/spark.md, "Publishing"."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow as pa

from rumq.spark.errors import BadOption, BadRow, UnknownOption
from rumq.spark.publish import Target, messages, parse_target
from tests.broker_process import Rumqd

PLAIN = Target("localhost", 1883, False)


def outgoing(rows: list[dict[str, Any]], target: Target = PLAIN) -> list[Any]:
    return list(messages(pa.RecordBatch.from_pylist(rows), target, None, 0))


def test_what_a_row_does_not_say_the_options_say() -> None:
    (message,) = outgoing([{"payload": "ü"}], Target("h", 1, False, topic="a", qos=2, retain=True))
    assert (message.topic, message.payload, message.qos, message.retain) == ("a", "ü".encode(), 2, True)
    said = {
        "topic": "b",
        "payload": b"x",
        "qos": 0,
        "retain": False,
        "content_type": "t",
        "message_expiry": 9,
    }
    (message,) = outgoing([said], Target("h", 1, False, qos=2, retain=True))
    assert (message.topic, message.qos, message.retain) == ("b", 0, False)
    assert message.properties == {"content_type": "t", "message_expiry_interval": 9}


def test_user_properties_and_where_a_row_comes_from() -> None:
    batch = pa.RecordBatch.from_pylist([{"topic": "a", "properties": [{"key": "k", "value": "v"}]}] * 2)
    found = [m.properties["user_properties"] for m in messages(batch, PLAIN, lambda row: f"q/0/1/{row}", 5)]
    assert found == [[("k", "v"), ("rumq-origin", "q/0/1/5")], [("k", "v"), ("rumq-origin", "q/0/1/6")]]


@pytest.mark.parametrize(
    ("row", "says"),
    [({"topic": None}, "expected a topic"), ({"topic": "a/#"}, "has a wildcard"),
     ({"topic": "a", "qos": 3}, "expected 0, 1 or 2")],
)  # fmt: skip
def test_a_row_that_cannot_be_published_is_named(row: dict[str, Any], says: str) -> None:
    with pytest.raises(BadRow, match=says):
        outgoing([row])


def test_options_of_the_sink_are_checked() -> None:
    found = parse_target({"broker": "mqtts://h", "qos": "2", "checkpointLocation": "x"})
    assert (found.host, found.port, found.tls, found.qos) == ("h", 8883, True, 2)
    for broker in ("h:1883", "http://h", "mqtt://", "mqtt://h:x", "mqtt://u:p@h"):
        with pytest.raises(BadOption, match="mqtt://host:1883"):
            parse_target({"broker": broker})
    with pytest.raises(UnknownOption, match="passwordFile"):
        parse_target({"broker": "mqtt://h", "password": "x"})
    with pytest.raises(UnknownOption, match="did you mean tlsCa"):
        parse_target({"broker": "mqtt://h", "tlsC": "x"})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rumqd]:
    made = Rumqd(tmp_path_factory.mktemp("broker") / "data")
    made.start()
    yield made
    made.end()


@pytest.mark.spark
def test_a_batch_and_a_stream_are_published_and_can_be_read(
    spark: Any, broker: Rumqd, data: str, tmp_path: Path
) -> None:
    """From one log through Spark to a broker, and from its log, while it runs, back."""
    url = f"mqtt://{broker.address.host}:{broker.address.port}"
    batch = spark.read.format("rumq").load(data)
    batch.select("topic", "payload", "qos", "retain", "properties", "content_type").write.format("rumq").mode(
        "append"
    ).option("broker", url).save()
    query = (
        spark.readStream.format("rumq")
        .load(data)
        .selectExpr("concat('again/', topic) as topic", "payload")
        .writeStream.format("rumq")
        .options(broker=url, qos="1", origin="true", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    broker.stop()
    found = spark.read.format("rumq").load(str(broker.data)).collect()
    plain = {bytes(row.payload): row for row in found if row.topic.startswith("plant/")}
    again = {bytes(row.payload): row for row in found if row.topic.startswith("again/")}
    assert len(found) == 600 and sorted(plain) == sorted(again) == sorted(b"%d" % n for n in range(300))
    row = plain[b"10"]
    assert (row.topic, row.qos, row.content_type) == ("plant/1/temp", 0, "x")
    assert [(p.key, p.value) for p in row.properties] == [("n", "10"), ("n", "again")]
    assert plain[b"299"].retain and again[b"10"].qos == 1
    query_id = json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"]
    origins = {row.properties[0].value for row in again.values()}
    assert origins == {f"{query_id}/0/0/{row}" for row in range(300)}
