"""Lone messages through a real broker: one publisher at a rate, one lasting subscriber that acknowledges each.

What is written is what the kernel charges to the broker's processes as pages become dirty (proc(5), `write_bytes`): the
file system's own metadata is not in it."""

from __future__ import annotations

import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.connections import (
    Address,
    BenchFault,
    open_connections,
    publish_packet,
    read_exactly,
    subscribe,
)
from bench.load.load import Load
from bench.peers.mosquitto import Mosquitto
from bench.peers.peer import HOST, Peer, Run, free_port
from bench.peers.rumq import Rumq
from bench.process import written_bytes
from bench.wear.parts import PARTS, taken

TOPIC = "bench/wear"
PAYLOAD_BYTES = 42
SETTLE_S = 1.5  # marks and a checkpoint are written by then
PUBACK = 0x40
ANSWER_SECONDS = 30.0


class SavingMosquitto(Mosquitto):
    """It writes its file at each change, as near to `disk` as it comes; without a sync."""

    name = "mosquitto, saved at once"

    def durability(self, load: Load) -> str:
        return "file, written at each change"

    def command(self, load: Load, folder: Path, port: int) -> list[str]:
        command = super().command(load, folder, port)
        with (folder / "mosquitto.conf").open("a") as settings:
            settings.write("autosave_on_changes true\nautosave_interval 1\n")
        return command


PEERS: dict[str, Peer] = {
    "rumq": Rumq(),
    "mosquitto": Mosquitto(),
    "mosquitto-saving": SavingMosquitto(),
}


@dataclass(frozen=True, slots=True)
class Wear:
    """Of one run. written: bytes while the messages came; taken: of the disk once the broker has ended, by part"""

    messages: int
    durability: str
    written: int
    taken: Counter[str]

    def figures(self) -> dict[str, float]:
        """Bytes a message."""
        found = {"written": self.written / self.messages}
        return found | {
            f"on the disk: {part}": self.taken[part] / self.messages for part in PARTS if part in self.taken
        }


def lone_messages(peer: Peer, rate: float, count: int) -> Wear:
    """raises: BenchFault, also where a message does not come within 30 s"""
    load = Load(publishers=1, subscribers=1, qos=1, lasting=True, durability="disk")
    with tempfile.TemporaryDirectory(prefix="bench-wear-") as name:
        folder, port = Path(name), free_port()
        run = Run(peer.name, peer.command(load, folder, port), folder, (HOST, port))
        try:
            broker = run.begin()
            assert broker.pid is not None
            with clients(broker.address) as (publisher, subscriber):
                time.sleep(SETTLE_S)
                before = written_bytes(broker.pid)
                exchange(publisher, subscriber, rate, count)
                time.sleep(SETTLE_S)
                written = written_bytes(broker.pid) - before
        finally:
            run.end()
        data = folder / "data"
        found = taken(data) if data.is_dir() else Counter({"log": sizes(folder, "mosquitto.db")})
        return Wear(count, peer.durability(load), written, found)


def sizes(folder: Path, name: str) -> int:
    return 512 * (folder / name).stat().st_blocks if (folder / name).exists() else 0


@contextmanager
def clients(address: Address) -> Iterator[tuple[socket.socket, socket.socket]]:
    (publisher,) = open_connections(address, ["wear-publisher"])
    (subscriber,) = open_connections(address, ["wear-subscriber"], lasting=True)
    try:
        subscribe(subscriber, TOPIC, 1)
        publisher.settimeout(ANSWER_SECONDS)
        subscriber.settimeout(ANSWER_SECONDS)
        yield publisher, subscriber
    finally:
        publisher.close()
        subscriber.close()


def payload(number: int) -> bytes:
    return (b"%d " % number).ljust(PAYLOAD_BYTES, b".")


def exchange(publisher: socket.socket, subscriber: socket.socket, rate: float, count: int) -> None:
    """Each message once the one before was delivered and acknowledged, and not before its time."""
    begin = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begin + number / rate - time.monotonic()))
        packet = bytearray(publish_packet(TOPIC.encode(), 1, payload(number)))
        at = len(packet) - PAYLOAD_BYTES - 2
        packet[at : at + 2] = (1 + number % 0xFFFF).to_bytes(2, "big")
        try:
            publisher.sendall(packet)
            came = read_exactly(subscriber, len(packet))
            subscriber.sendall(bytes([PUBACK, 2]) + came[at : at + 2])
            acknowledged = read_exactly(publisher, 4)
        except TimeoutError as fault:
            raise BenchFault(f"message {number} of {count} was not delivered and acknowledged in time") from fault
        if came[-PAYLOAD_BYTES:] != payload(number) or acknowledged != bytes([PUBACK, 2]) + packet[at : at + 2]:
            raise BenchFault(f"message {number} came as {came!r}, its acknowledgement as {acknowledged!r}")
