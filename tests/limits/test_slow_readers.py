"""A subscriber that stops reading costs no memory, holds up nobody, and loses nothing."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance import wire

MESSAGES, PAYLOAD = 250_000, 1000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Rumqd]:
    made = Rumqd(tmp_path / "data", "--set", "log.hot_bytes_max=16777216", "--set", "log.durability=process")
    made.start()
    yield made
    made.stop()


def dial(broker: Rumqd, name: str) -> socket.socket:
    sock = socket.create_connection(broker.address, 10)
    sock.settimeout(60)
    sock.sendall(wire.connect(name, 4))
    assert sock.recv(4) == b"\x20\x02\x00\x00"
    return sock


def subscribed(broker: Rumqd, name: str) -> socket.socket:
    sock = dial(broker, name)
    sock.sendall(wire.subscribe(1, [("flood", 0)], version=4))
    assert sock.recv(5)[:1] == b"\x90"
    return sock


def read_all(sock: socket.socket, numbers: list[int]) -> None:
    """Take every message; numbers: what they say, in order of arrival."""
    frame = len(wire.publish("flood", bytes(PAYLOAD), 0, None, version=4))
    tail = b""
    while len(numbers) < MESSAGES:
        tail += sock.recv(1 << 20)
        whole = len(tail) // frame
        for n in range(whole):
            at = (n + 1) * frame - PAYLOAD
            numbers.append(int.from_bytes(tail[at : at + 8], "big"))
        tail = tail[whole * frame :]


def resident(broker: Rumqd) -> int:
    with open(f"/proc/{broker.process.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_one_that_stops_reading_costs_nothing_and_gets_everything_later(broker: Rumqd) -> None:
    publisher = dial(broker, "publisher")
    stuck, lively = subscribed(broker, "stuck"), subscribed(broker, "lively")
    seen: list[int] = []
    reader = threading.Thread(target=read_all, args=(lively, seen))
    reader.start()
    before = resident(broker)
    for start in range(0, MESSAGES, 100):
        batch = (n.to_bytes(8, "big") + bytes(PAYLOAD - 8) for n in range(start, start + 100))
        publisher.sendall(b"".join(wire.publish("flood", payload, 0, None, version=4) for payload in batch))
    reader.join(60)
    assert seen == list(range(MESSAGES)), "the other one is not held up"
    # 250 MB went by; what may grow is the log's recent memory, buffers of the writer and the allocator's slack.
    assert resident(broker) - before < 128 << 20
    late: list[int] = []
    read_all(stuck, late)
    assert late == list(range(MESSAGES)), "and the stuck one has lost nothing"
