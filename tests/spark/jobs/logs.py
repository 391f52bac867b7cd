"""Logs for the tests of jobs: real hourly temperatures, and what a test makes up."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from examples.readings import temperatures
from rumq.mqtt.packets import Publish
from tests.commitlog.records import NOW
from tests.spark.logs import SECOND_US, Publisher, message, store_at

CHUNK = 2000
Reading = tuple[str, str, float]  # city, ISO time, degrees Celsius


def weather() -> list[Reading]:
    """All hours of 2010, of two cities; a few hours are missing or doubled where the clocks change."""
    return list(temperatures())


def weather_message(reading: Reading) -> Publish:
    city, time, celsius = reading
    return message(f"weather/{city}/temperature", json.dumps({"time": time, "celsius": celsius}).encode(), 1)


def write_log(root: str, messages: Sequence[Publish], client_id: str = "device-7", chunk: int = CHUNK) -> None:
    """Chunks a second apart."""
    write_timed(
        root,
        ((n // chunk, client_id, messages[n : n + chunk]) for n in range(0, len(messages), chunk)),
    )


def write_timed(root: str, parts: Iterable[tuple[float, str, Sequence[Publish]]]) -> None:
    """parts: seconds after NOW, client id, messages"""
    store = store_at(root, segment_bytes_max=1 << 20)
    publishers: dict[str, Publisher] = {}
    for seconds, client_id, messages in parts:
        publisher = publishers.setdefault(client_id, Publisher(store.own[0], client_id))
        publisher.chunk(messages, NOW + round(seconds * SECOND_US))
    store.close()


def as_json(topic: str, **fields: Any) -> Publish:
    return message(topic, json.dumps(fields).encode())


def collected(df: Any) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in df.collect()]


def streamed(
    spark: Any, df: Any, name: str, checkpoint: str | None = None, mode: str = "append"
) -> list[dict[str, Any]]:
    """What a stream gives of what is there."""
    writer = df.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True)
    if checkpoint:
        writer = writer.option("checkpointLocation", checkpoint)
    query = writer.start()
    query.awaitTermination()
    return collected(spark.table(name))
