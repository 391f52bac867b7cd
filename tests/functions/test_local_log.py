"""The committed log of a data directory as batches of the wanted topics, while its broker runs."""

import paho.mqtt.client as paho

import rumq
from rumq.embedded.broker import EmbeddedBroker
from rumq.functions.function_rows import SCHEMA
from rumq.functions.local_log import LocalLog


def publish(broker: EmbeddedBroker, *topics: str) -> None:
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect(broker.host, broker.port)
    client.loop_start()
    for topic in topics:
        client.publish(topic, topic, qos=1).wait_for_publish(60)
    client.disconnect()
    client.loop_stop()


def test_it_gives_the_records_of_its_filters_and_sees_new_ones() -> None:
    with rumq.broker() as broker:
        log = LocalLog(str(broker.data), ("plant/#",))
        (name,) = log.look()
        assert log.ends(name) == (0, 0)
        publish(broker, "plant/1", "other/1", "plant/2")
        broker.stop()  # so that all of it is committed
        log.look()
        assert log.ends(name) == (0, 3)
        assert log.end_within(name, 0, 3, 8 << 20) == 3
        batches = list(log.batches(name, 0, 3))
        assert all(batch.schema == SCHEMA for batch in batches)
        assert [row["topic"] for batch in batches for row in batch.to_pylist()] == ["plant/1", "plant/2"]
        assert [row["lsn"] for batch in log.batches(name, 1, 3) for row in batch.to_pylist()] == [2]
