"""From PUBLISH to a consumer that waits: messages at a steady rate, QoS 1, durability disk, consumed by one client."""

from __future__ import annotations

import socket
import threading
import time
from pathlib import Path

from bench.gateway.running import running
from bench.kafka.reader import KafkaReader, count_of
from bench.process import process_cpu_s, read, tree
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Connect, Publish

RATES = (50, 1_000)
TIME_BYTES = 8
RECEIVE_BYTES = 1 << 16
TOPIC = "bench/latency"


def latency(runs: int, seconds: float) -> dict[str, float]:
    found: dict[str, float] = {}
    for rate in RATES:
        samples: list[float] = []
        cpu = 0.0
        for _ in range(runs):
            with running("kafka.port=-1", "kafka.host=127.0.0.1", "gateway.port=0", "shards.count=1") as here:
                port = int(here.wait("listener.bound", protocol="kafka")["port"])
                server = next(pid for pid in tree(here.pid) if "kafka\0--for-broker" in read_command(pid))
                before, began = process_cpu_s(server), time.monotonic()
                samples += consumed(here.port, port, rate, max(1, int(rate * seconds)))
                cpu += (process_cpu_s(server) - before) / (time.monotonic() - began) / runs
        samples.sort()
        found |= {
            f"{rate} msg/s, publish to consume p50, ms": 1000 * samples[len(samples) // 2],
            f"{rate} msg/s, publish to consume p99, ms": 1000 * samples[int(len(samples) * 0.99)],
            f"{rate} msg/s, cores of the server": cpu,
        }
    return found


def read_command(pid: int) -> str:
    return read(Path(f"/proc/{pid}/cmdline"))


def consumed(mqtt_port: int, kafka_port: int, rate: int, count: int) -> list[float]:
    """Seconds of each message."""
    publisher = socket.create_connection(("127.0.0.1", mqtt_port), timeout=30.0)
    publisher.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    publisher.sendall(encode(Connect("bench"), 5))
    publisher.recv(RECEIVE_BYTES)
    threading.Thread(target=drain, args=(publisher,), daemon=True).start()
    reader = KafkaReader(kafka_port)
    sender = threading.Thread(target=publish, args=(publisher, rate, count), daemon=True)
    at, found = reader.end("main", 0), list[float]()
    reader.fetch("main", 0, at, wait_ms=200)  # so that it follows already
    sender.start()
    while len(found) < count:
        batches, at = reader.fetch("main", 0, at)
        now = time.time_ns()
        for batch in batches:
            found += [(now - sent) / 1e9 for sent in times_in(batch)]
    reader.close()
    publisher.close()
    return found


def times_in(batch: bytes) -> list[int]:
    """The times that are the payloads: each stands behind the topic and its length."""
    mark, found, at = TOPIC.encode() + bytes((2 * TIME_BYTES,)), list[int](), 0
    for _ in range(count_of(batch)):
        at = batch.index(mark, at) + len(mark)
        found.append(int.from_bytes(batch[at : at + TIME_BYTES], "big"))
    return found


def publish(sock: socket.socket, rate: int, count: int) -> None:
    due = time.monotonic()
    for n in range(count):
        due += 1 / rate
        time.sleep(max(0.0, due - time.monotonic()))
        payload = time.time_ns().to_bytes(TIME_BYTES, "big")
        sock.sendall(encode(Publish(TOPIC, payload, 1, packet_id=n % 65_535 + 1), 5))


def drain(sock: socket.socket) -> None:
    """Take acknowledgements."""
    try:
        while sock.recv(RECEIVE_BYTES):
            pass
    except OSError:
        pass
