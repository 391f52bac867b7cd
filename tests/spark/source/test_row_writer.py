"""Rows of Spark as messages of a broker. docs/guides/spark.md, "Publish"."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

from rumq.sink.sink_connection import SinkPartition
from rumq.sink.sink_options import parse_sink_options
from rumq.table.errors import BadOption, UnknownOption
from tests.broker_process import Rumqd


def test_options_of_the_sink_are_checked() -> None:
    found = parse_sink_options({"broker": "mqtts://h", "qos": "2", "checkpointLocation": "x"})
    assert (found.host, found.port, found.tls, found.qos) == ("h", 8883, True, 2)
    for broker in ("h:1883", "http://h", "mqtt://", "mqtt://h:x", "mqtt://u:p@h"):
        with pytest.raises(BadOption, match="mqtt://host:1883"):
            parse_sink_options({"broker": broker})
    with pytest.raises(UnknownOption, match="passwordFile"):
        parse_sink_options({"broker": "mqtt://h", "password": "x"})
    with pytest.raises(UnknownOption, match="did you mean tlsCa"):
        parse_sink_options({"broker": "mqtt://h", "tlsC": "x"})


def test_options_of_once_are_checked() -> None:
    found = parse_sink_options({"broker": "mqtt://h", "once": "true", "onceDoubt": "repeat", "sessionExpiry": "2d"})
    assert (found.once, found.qos, found.repeat_in_doubt, found.session_seconds) == (
        True,
        2,
        True,
        2 * 86_400,
    )
    for option, value, says in (
        ("qos", "1", "publishes with QoS 2"), ("onceDoubt", "maybe", "fail or repeat"),
        ("stateTopic", "a/+", "wildcard"), ("sessionExpiry", "5s", "a minute"),
        ("sessionExpiry", "soon", "a time span"),
    ):  # fmt: skip
        with pytest.raises(BadOption, match=says):
            parse_sink_options({"broker": "mqtt://h", "once": "true", option: value})
    with pytest.raises(BadOption, match="once = true as well"):
        parse_sink_options({"broker": "mqtt://h", "stateTopic": "a"})


def test_an_attempt_at_the_same_rows_has_the_same_names() -> None:
    target = parse_sink_options({"broker": "mqtt://h", "once": "true"})
    place = SinkPartition("0a-1b", 7, 3)
    assert place.client_id(target) == "rumq-spark-0a-1b-3" and place.state_topic(target) == "rumq/spark/0a-1b/3"
    other = parse_sink_options({"broker": "mqtt://h", "once": "true", "clientId": "jobs", "stateTopic": "jobs/state"})
    assert place.client_id(other) == "jobs-3" and place.state_topic(other) == "jobs/state/3"
    assert place.origin() == "0a-1b/7/3/"


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
