"""Logs for the tests of Spark, written as a broker writes them."""

from collections.abc import Sequence
from typing import Any

from commitlog import OpenOptions, Partition, RealFiles, Store, StoreLayout, StreamSpec, open_store
from rumq.mqtt.encode import encode
from rumq.mqtt.kernels import ingest
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Publish
from tests.commitlog.records import DEAD, NOW, write

SECOND_US = 1_000_000


def store_at(root: str, *, segment_bytes_max: int = 30_000, partitions: int = 1, holder: str = DEAD) -> Store:
    spec = StreamSpec("main", ("#",), partitions, segment_bytes_max=segment_bytes_max)
    return open_store(RealFiles(), root, StoreLayout([spec], lambda f, t: True), OpenOptions(NOW), holder=holder)


class Publisher:
    """Takes messages into a partition, as one client."""

    def __init__(self, partition: Partition, client_id: str = "device-7") -> None:
        self._partition = partition
        self._wire, self._batch = Wire(True, 1 << 20, 65535, 0), Batch()
        self._wire.publishers = [partition.add_publisher(client_id)]
        self._topics: dict[bytes, int] = {name: n for n, name in enumerate(partition.topic_names)}

    def chunk(self, messages: Sequence[Publish], ts_us: int = NOW) -> None:
        """Messages as one chunk, on disk and committed when it returns."""
        for message in messages:
            frame = encode(message, 5)
            while ingest.cut(self._wire, [self._batch], frame, 0, len(frame), self._topics) == 0:
                if self._wire.stop == ingest.FULL:
                    self._batch.grow(self._wire.frame_bytes)
                else:
                    self._topics[self._wire.topic] = self._partition.add_topic(self._wire.topic)
            self._wire.unacknowledged = 0
        rows, frames, count, flags, _ = self._batch.take()
        self._partition.append(rows, frames, count, flags, ts_us)
        assert write(self._partition)


def message(topic: str, payload: bytes, qos: int = 0, *, retain: bool = False, **properties: Any) -> Publish:
    given: Any = properties
    return Publish(topic, payload, qos, retain, packet_id=1 if qos else None, properties=given)


def example(n: int) -> Publish:
    properties: Any = {"user_properties": [("n", str(n)), ("n", "again")], "content_type": "x"} if n % 10 == 0 else {}
    return message(f"plant/{n % 3}/temp", b"%d" % n, n % 2, retain=n == 299, **properties)


def write_example(root: str) -> None:
    store = store_at(root)
    publisher = Publisher(store.own[0])
    for first in range(0, 300, 20):
        publisher.chunk([example(n) for n in range(first, first + 20)], NOW + (first + 19) * SECOND_US)
    store.close()
