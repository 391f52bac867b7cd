"""Clients of paho and mosquitto at each node while shards are moved: what they noticed, lost and got twice."""

from __future__ import annotations

import collections
import itertools
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho

from rumq.net.client_placement import home_of
from tests.conformance.peer import Address

TOPIC = "moves"
PAUSE_SECONDS = 0.02  # of a publisher between two messages


class PahoClient:
    """One connection. faults: what it was told of the connection, beside its beginning"""

    def __init__(self, name: str, address: Address, version: int, clean: bool, will: bool = False) -> None:
        self.name, self.version, self.faults = name, version, list[str]()
        more: dict[str, Any] = {} if version == paho.MQTTv5 else {"clean_session": clean}
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, name, protocol=version, **more)
        self.client.max_inflight_messages_set(20)
        self.client.on_disconnect = self._disconnected
        self.client.on_connect = self._connected
        self.connected = threading.Event()
        self._is_ending = False
        if will:
            self.client.will_set(f"{TOPIC}-will/{name}", b"gone", qos=1)
        properties = None
        if version == paho.MQTTv5:
            properties = paho.Properties(paho.PacketTypes.CONNECT)  # type: ignore[attr-defined]
            properties.SessionExpiryInterval = 0 if clean else 600
        first = {"clean_start": True, "properties": properties} if version == paho.MQTTv5 else {}
        self.client.connect(*address, keepalive=20, **first)
        self.client.loop_start()
        assert self.connected.wait(20), f"{name} was not connected: {self.faults}"

    def _connected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if self.connected.is_set():
            self.faults.append("connected again")
        if reason.is_failure:
            self.faults.append(f"refused: {reason}")
        else:
            self.connected.set()

    def _disconnected(self, client: Any, data: Any, flags: Any, reason: Any, properties: Any) -> None:
        if not self._is_ending:
            self.faults.append(f"disconnected: {reason}")

    def end(self) -> None:
        self._is_ending = True
        self.client.disconnect()
        self.client.loop_stop()


class Publisher(PahoClient):
    """Publishes numbers until it is stopped; at most 20 are in flight."""

    def __init__(self, name: str, address: Address, version: int, qos: int, clean: bool) -> None:
        self.qos, self.count = qos, 0
        self._stop = threading.Event()
        super().__init__(name, address, version, clean, will=True)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._infos: list[Any] = []
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            info = self.client.publish(f"{TOPIC}/{self.qos}/{self.name}", str(self.count), qos=self.qos)
            self._infos.append(info)
            self.count += 1

    def finish(self, seconds: float) -> None:
        """Publish no more, and wait for all acknowledgements."""
        self._stop.set()
        self._thread.join()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not all(map(is_published, self._infos)):
            time.sleep(0.05)
        missing = sum(not is_published(info) for info in self._infos)
        if missing:
            self.faults.append(f"{missing} of {self.count} are not acknowledged")


def is_published(info: Any) -> bool:
    try:
        return bool(info.is_published())
    except RuntimeError:  # it was not connected, which is a fault of its own
        return False


class Subscriber(PahoClient):
    """got: publisher -> numbers as they came; wills: that came"""

    def __init__(self, name: str, address: Address, version: int, qos: int, clean: bool) -> None:
        self.qos = qos
        self.got: dict[str, list[int]] = collections.defaultdict(list)
        self.wills: list[str] = []
        super().__init__(name, address, version, clean, will=True)
        self.client.on_message = self._message
        done = threading.Event()
        self.client.on_subscribe = lambda *_: done.set()
        self.client.subscribe([(f"{TOPIC}/#", qos), (f"{TOPIC}-will/#", 1)])
        assert done.wait(20), "no SUBACK"

    def _message(self, client: Any, data: Any, message: Any) -> None:
        if message.topic.startswith(f"{TOPIC}-will"):
            self.wills.append(message.topic)
        else:
            self.got[message.topic.rpartition("/")[2]].append(int(message.payload))


class MosquittoSub:
    """`mosquitto_sub -d`, which says when it connects."""

    def __init__(self, name: str, address: Address, version: str, qos: int, log: Path) -> None:
        self.name, self.qos, self.log = name, qos, log
        host, port = address
        words = [
            "stdbuf",
            "-oL",
            "mosquitto_sub",
            "-d",
            "-h",
            host,
            "-p",
            str(port),
            "-i",
            name,
            "-V",
            version,
            "-k",
            "10",
        ]
        self._file = log.open("w")
        self.process = subprocess.Popen(
            [*words, "-q", str(qos), "-t", f"{TOPIC}/#", "-F", "GOT %t %p"], stdout=self._file, stderr=subprocess.STDOUT
        )
        until = time.monotonic() + 20
        while "SUBACK" not in log.read_text():
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.02)

    @property
    def got(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = collections.defaultdict(list)
        for line in self.log.read_text().splitlines():
            if line.startswith("GOT "):
                _, topic, number = line.split()
                found[topic.rpartition("/")[2]].append(int(number))
        return found

    @property
    def faults(self) -> list[str]:
        connects = self.log.read_text().count("sending CONNECT")
        return [] if connects == 1 else [f"it connected {connects} times"]

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        self._file.close()


class Crowd:
    """Subscribers and publishers at each address, with homes in each shard."""

    def __init__(self, addresses: list[Address], shards: int, folder: Path) -> None:
        self.subscribers: list[Subscriber | MosquittoSub] = []
        self.publishers: list[Publisher] = []
        kinds = itertools.cycle([(version, qos) for qos in (2, 1, 0) for version in (paho.MQTTv311, paho.MQTTv5)])
        for (at, address), shard in itertools.product(enumerate(addresses), range(shards)):
            version, qos = next(kinds)
            name = name_of(f"s{at}-{qos}", shard, shards)
            self.subscribers.append(Subscriber(name, address, version, qos, clean=(at + shard) % 2 == 0))
        for shard in range(shards):
            at = (shard + 1) % len(addresses)
            log = folder / f"mosquitto-{shard}.log"
            name = name_of("m", shard, shards)
            self.subscribers.append(MosquittoSub(name, addresses[at], ["311", "5"][shard % 2], 2 - shard % 2, log))
        for (at, address), shard in itertools.product(enumerate(addresses), range(shards)):
            version, qos = next(kinds)
            self.publishers.append(
                Publisher(name_of(f"p{at}-{qos}", shard, shards), address, version, qos, at % 2 == 0)
            )

    def finish(self, seconds: float) -> list[str]:
        """Publish no more. returns: everything that a client noticed"""
        for publisher in self.publishers:
            publisher.finish(seconds)
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._losses():
            time.sleep(0.1)
        found = [f"{each.name}: {fault}" for each in (*self.subscribers, *self.publishers) for fault in each.faults]
        found += self._losses() + self._disorder()
        found += [
            f"{each.name}: will {will}"
            for each in self.subscribers
            if isinstance(each, Subscriber)
            for will in each.wills
        ]
        for each in (*self.subscribers, *self.publishers):
            each.end()
        return found

    def stop(self) -> None:
        """Whatever has failed, no process stays."""
        for each in self.subscribers:
            if isinstance(each, MosquittoSub):
                each.end()

    def _losses(self) -> list[str]:
        found = []
        for subscriber in self.subscribers:
            got = subscriber.got
            for publisher in self.publishers:
                lost = set(range(publisher.count)) - set(got[publisher.name])
                if lost:
                    first = sorted(lost)[:5]
                    found.append(
                        f"{subscriber.name} (QoS {subscriber.qos}) lost {len(lost)} of {publisher.count} of "
                        f"{publisher.name}: {first}"
                    )
        return found

    def _disorder(self) -> list[str]:
        found = []
        for subscriber in self.subscribers:
            for name, numbers in subscriber.got.items():
                doubled = len(numbers) - len(set(numbers))
                if doubled:
                    found.append(f"{subscriber.name} (QoS {subscriber.qos}) got {doubled} of {name} twice")
                elif numbers != sorted(numbers):
                    found.append(f"{subscriber.name} (QoS {subscriber.qos}) got those of {name} out of order")
        return found


def name_of(prefix: str, shard: int, shards: int) -> str:
    """A client id whose home is this shard."""
    return next(name for number in itertools.count() if home_of(name := f"{prefix}-{number}", shards) == shard)
