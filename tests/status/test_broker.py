"""A real broker of one and of two shards tells real clients of itself; each client lives where its id leads."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest

from rumq.net.client_placement import home_of
from tests.broker_process import Rumqd
from tests.faults.kill.test_shards import shards_of
from tests.interop.paho_peer import Peer, peer

SECONDS_MAX = 60


@contextmanager
def running(folder: Path, shards: int, seconds: int = 1) -> Iterator[Rumqd]:
    broker = Rumqd(folder / "data", "--set", f"shards.count={shards}", "--set", f"sys.interval_seconds={seconds}")
    try:
        broker.start()
        yield broker
        crashes = broker.named("client.crashed", "shard.link_failed", "task.failed")
        assert broker.stop() == 0 and not crashes, crashes
    finally:
        broker.end()


def at_home(shard: int, shards: int, name: str) -> str:
    """A client id that lives in that shard."""
    return next(client_id for n in range(1000) if home_of(client_id := f"{name}-{n}", shards) == shard)


def until(watcher: Peer, wanted: Callable[[dict[str, str]], bool]) -> dict[str, str]:
    """Hear until that holds of the newest texts, by topics below $SYS; returns them."""
    heard: dict[str, str] = {}
    end = time.monotonic() + SECONDS_MAX
    while not wanted(heard):
        assert time.monotonic() < end, heard
        (message,) = watcher.take()
        heard[message.topic.removeprefix("$SYS/")] = message.payload.decode()
    return heard


@pytest.mark.parametrize("shards", [1, 2])
def test_the_numbers_are_right_after_known_traffic_whoever_listens(tmp_path: Path, shards: int) -> None:
    with running(tmp_path, shards) as broker:
        look_at_numbers(broker, shards)


def look_at_numbers(broker: Rumqd, shards: int) -> None:
    count = 25
    ids = [at_home(shard, shards, "watcher") for shard in range(shards)]
    with (
        peer(broker.address, mqtt.MQTTv5, at_home(0, shards, "p")) as publisher,
        peer(broker.address, mqtt.MQTTv311, at_home(shards - 1, shards, "r")) as reader,
    ):
        reader.subscribe("a/#", 1)
        for n in range(5):
            publisher.publish_all(f"a/{n}", [b"x" * 10] * (count // 5), 1)
        publisher.publish("a/0", b"kept", retain=True)
        assert len(reader.take(count + 1)) == count + 1
        watchers = [Peer(broker.address, mqtt.MQTTv5, client_id) for client_id in ids]
        for watcher in watchers:
            watcher.subscribe("$SYS/#", 2)
        wanted = {
            "broker/publish/messages/received": count + 1,
            "broker/messages/stored": count + 1,
            "broker/clients/connected": 2 + shards,
            "broker/subscriptions/count": 1 + shards,
            "broker/retained messages/count": 1,
        }

        def is_right(heard: dict[str, str]) -> bool:
            marks = [int(text) for name, text in heard.items() if name.endswith("/next_lsn")]
            topics = [int(text) for name, text in heard.items() if name.endswith("/topics")]
            return (
                all(heard.get(name) == str(number) for name, number in wanted.items())
                and (len(marks), sum(marks)) == (shards, count + 1)
                and (len(topics), sum(topics)) == (shards, 5)
                and float(heard.get("broker/load/publish/received/1min", 0)) > 0
                and heard.get("broker/version", "").startswith("rumq version ")
            )

        for watcher in watchers:
            until(watcher, is_right)
            watcher.leave()
    for shard in range(shards):
        with peer(broker.address, mqtt.MQTTv311, at_home(shard, shards, "late")) as late:
            late.subscribe("$SYS/broker/version", 1)
            (message,) = late.take()  # it was published once, at the start
            assert (message.retain, message.payload[:4]) == (True, b"rumq")


def test_what_clients_publish_there_reaches_nobody(tmp_path: Path) -> None:
    with (
        running(tmp_path, 2) as broker,
        peer(broker.address, mqtt.MQTTv5, at_home(0, 2, "liar")) as liar,
        peer(broker.address, mqtt.MQTTv5, at_home(1, 2, "w")) as watcher,
    ):
        watcher.subscribe("$SYS/lies/#", 1)
        watcher.subscribe("end", 1)
        liar.client.publish("$SYS/lies/x", b"lie", 1, retain=True)
        liar.publish("end", b"end")
        assert [message.topic for message in watcher.take()] == ["end"]
        watcher.subscribe("#", 1)
        liar.publish("end", b"again")
        assert [message.payload for message in watcher.take()] == [b"again"]


def test_it_goes_on_after_the_shard_that_tells_has_died(tmp_path: Path) -> None:
    with (
        running(tmp_path, 2) as broker,
        peer(broker.address, mqtt.MQTTv5, at_home(1, 2, "w")) as watcher,
    ):
        watcher.subscribe("$SYS/broker/#", 1)
        until(watcher, lambda heard: heard.get("broker/clients/connected") == "1")
        os.kill(shards_of(broker.process.pid)[0], signal.SIGKILL)
        broker.event("shard.ready")
        with peer(broker.address, mqtt.MQTTv5, at_home(0, 2, "new")):
            heard = until(
                watcher,  # the version as well: all is new to the one that tells now
                lambda heard: heard.get("broker/clients/connected") == "2" and "broker/version" in heard,
            )
        assert "broker/uptime" in heard


def test_with_an_interval_of_0_there_is_nothing(tmp_path: Path) -> None:
    with running(tmp_path, 1, 0) as broker, peer(broker.address, mqtt.MQTTv5, "w") as watcher:
        watcher.subscribe("$SYS/#", 1)
        watcher.subscribe("end", 1)
        watcher.publish("end", b"end")
        assert [message.topic for message in watcher.take()] == ["end"]
