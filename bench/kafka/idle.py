"""Consumers that wait for what does not come: CPU and memory of the server for each."""

from __future__ import annotations

import selectors
import threading
import time

from bench.gateway.running import running
from bench.kafka.latency import read_command
from bench.kafka.reader import KafkaReader
from bench.process import process_cpu_s, resident_bytes, tree

CONSUMERS, WAIT_MS = 1_000, 500
BEGIN_SECONDS = 2.0  # until all ask, and the server knows that they ask the same


class IdleConsumers:
    """Each asks again every half second, as librdkafka does. One thread has them all: one for each would take more than
    the server, and each answer would wake another one. asked: questions so far"""

    def __init__(self, port: int, count: int) -> None:
        self._readers = [KafkaReader(port) for _ in range(count)]
        self.asked = 0

    def run(self, until: float) -> None:
        """until: of the monotonic clock. raises: OSError"""
        with selectors.DefaultSelector() as selector:
            for reader in self._readers:
                selector.register(reader.socket, selectors.EVENT_READ, reader)
                self._ask(reader)
                time.sleep(WAIT_MS / 1000 / len(self._readers))  # or all of them would ask at once
            while time.monotonic() < until:
                for key, _ in selector.select(1.0):
                    key.data.answer()
                    self._ask(key.data)
        for reader in self._readers:
            reader.close()

    def _ask(self, reader: KafkaReader) -> None:
        reader.send_fetch("main", 0, 0, WAIT_MS)
        self.asked += 1


def idle(seconds: float, count: int = CONSUMERS) -> dict[str, float]:
    """Half of connections_max is one network's."""
    settings = ("kafka.port=-1", "kafka.host=127.0.0.1", "gateway.port=0", f"kafka.connections_max={4 * count}")
    with running(*settings) as here:
        port = int(here.wait("listener.bound", protocol="kafka")["port"])
        server = next(pid for pid in tree(here.pid) if "kafka\0--for-broker" in read_command(pid))
        before = resident_bytes(server)
        consumers = IdleConsumers(port, count)
        until = time.monotonic() + BEGIN_SECONDS + seconds
        thread = threading.Thread(target=consumers.run, args=(until,), daemon=True)
        thread.start()
        time.sleep(BEGIN_SECONDS)
        cpu, asked, began = process_cpu_s(server), consumers.asked, time.monotonic()
        time.sleep(seconds - 0.1)
        cpu, asked, passed = process_cpu_s(server) - cpu, consumers.asked - asked, time.monotonic() - began
        memory = (resident_bytes(server) - before) / count
        thread.join()
    return {
        f"{count} idle consumers, cores of the server": cpu / passed,
        "questions a second": asked / passed,
        "CPU of a question, us": 1e6 * cpu / asked,
        "memory of each, KiB": memory / 1024,
    }
