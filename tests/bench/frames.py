"""Frames as a publisher of the bench makes them, with anything in them changed by the test."""

import sys
from array import array
from types import ModuleType
from typing import Any

from bench.connections import publish_packet
from bench.load.load import FILLER, TOPIC_BYTES, Load

LOAD = Load(publishers=3, subscribers=1, topics=2)


def payload(publisher: int, sequence: int, sent_ns: int = 0, filler: bytes = FILLER) -> bytes:
    fields = ((publisher, 4), (sequence, 8), (sent_ns, 8))
    return b"".join(value.to_bytes(size, sys.byteorder) for value, size in fields) + filler


def topic_of(publisher: int, sequence: int, load: Load = LOAD) -> bytes:
    number = publisher * load.topics + sequence % load.topics
    return b"b/%05d" % number


def frame(publisher: int, sequence: int, *, qos: int = 0, packet_id: int = 0, **changed: Any) -> bytes:
    """changed: topic, first_byte, and what `payload` takes."""
    topic = changed.pop("topic", topic_of(publisher, sequence))
    first_byte = changed.pop("first_byte", None)
    data = bytearray(publish_packet(topic, qos, payload(publisher, sequence, **changed)))
    if qos:
        data[4 + len(topic) : 6 + len(topic)] = packet_id.to_bytes(2, "big")
    if first_byte is not None:
        data[0] = first_byte
    return bytes(data)


def checker(kernel: ModuleType, load: Load = LOAD, samples: int = 0) -> Any:
    """One that expects all publishers of `load`."""
    names = load.topic_names(range(load.publishers))
    expected = array("Q", bytes(8 * load.publishers))
    return kernel.Check(expected, names, TOPIC_BYTES, load.topics, FILLER, array("Q", bytes(8 * samples)))


def take(check: Any, data: bytes, now_ns: int = 0) -> tuple[int, bytes]:
    """Where the kernel stopped, and what it replied."""
    replies = bytearray(len(data) + 4)
    taken = check.take(bytearray(data), len(data), replies, 0, now_ns)
    return taken, bytes(replies[: check.out_end])
