"""From devices to a subscriber, all over MQTT: paho, rumqd, its log, a job, rumqd, paho."""

import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
pytest.importorskip("vega_datasets", reason="vega_datasets is not installed (pip install 'rumq[examples]')")

from rumq.cli.main import main
from tests.broker_process import Rumqd
from tests.spark.jobs.logs import Reading
from tests.spark.jobs.test_windows import days

pytestmark = pytest.mark.spark
HOURS = 30 * 24  # of each city
SECONDS_MAX = 30


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Rumqd]:
    made = Rumqd(tmp_path / "data")
    made.start()
    yield made
    made.end()


class Device:
    """A paho client that is connected."""

    def __init__(self, broker: Rumqd, client_id: str) -> None:
        self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTv5)
        self.taken: list[Any] = []
        self._ready, self._all, self._count = threading.Event(), threading.Event(), 0
        self.client.on_connect = lambda *_: self._ready.set()
        self.client.on_subscribe = lambda *_: self._ready.set()
        self.client.on_message = self._take
        self.client.connect(broker.address.host, broker.address.port)
        self.client.loop_start()
        assert self._ready.wait(SECONDS_MAX)

    def subscribe(self, topics: str, count: int) -> None:
        """Returns once the broker has taken it. count: see `wait`"""
        self._ready.clear()
        self._count = count
        self.client.subscribe(topics, 1)
        assert self._ready.wait(SECONDS_MAX)

    def _take(self, _client: Any, _data: Any, message: Any) -> None:
        self.taken.append(message)
        if len(self.taken) >= self._count:
            self._all.set()

    def wait(self) -> None:
        """Until so many messages have come."""
        assert self._all.wait(SECONDS_MAX), f"{len(self.taken)} of {self._count} came"

    def leave(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def test_devices_publish_and_a_subscriber_gets_the_days(
    spark: Any, broker: Rumqd, tmp_path: Path, readings: list[Reading]
) -> None:
    """Each day of each city once, live, and exactly as computed by hand, while the broker goes on."""
    sent = [one for city in ("seattle", "san-francisco") for one in [r for r in readings if r[0] == city][:HOURS]]
    expected = days(sent)
    desk = Device(broker, "desk")
    desk.subscribe("weather/+/daily", len(expected))
    stations = {city: Device(broker, f"station-{city}") for city in ("seattle", "san-francisco")}
    waiting = [
        stations[city].client.publish(
            f"weather/{city}/temperature", json.dumps({"time": time, "celsius": celsius}), qos=1
        )
        for city, time, celsius in sent
    ]
    for message in waiting:
        message.wait_for_publish(SECONDS_MAX)
    # The files say what is committed 50 ms after the last record at the latest: until then the job reads less.
    log = spark.read.format("rumq").load(str(broker.data))
    while log.count() < len(sent):
        log = spark.read.format("rumq").load(str(broker.data))
    assert main([
        "spark", "run", "downsample", "--data", str(broker.data), "--subscribe", "weather/+/temperature",
        "--topics", "weather/{city}/temperature", "--json", "time timestamp, celsius double", "--time", "time",
        "--value", "celsius", "--by", "city", "--window", "1 day", "--master", "local[2]",
        "--to", f"mqtt://{broker.address.host}:{broker.address.port}", "--topic", "weather/{city}/daily",
    ]) == 0  # fmt: skip
    desk.wait()
    for device in (desk, *stations.values()):
        device.leave()
    found = {(m.topic, json.loads(m.payload)["start"]): json.loads(m.payload) for m in desk.taken}
    assert len(desk.taken) == len(found) == len(expected) == 60
    for (city, day), values in expected.items():
        row = found[f"weather/{city}/daily", day.strftime("%Y-%m-%dT%H:%M:%S.000Z")]
        assert math.isclose(row.pop("celsius_mean"), math.fsum(values) / len(values), rel_tol=1e-12)
        assert row == {
            "city": city, "start": row["start"], "count": len(values),
            "celsius_min": min(values), "celsius_max": max(values),
        }  # fmt: skip
