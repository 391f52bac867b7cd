"""Consumers that wait for what does not come: CPU and memory of the server for each."""

from __future__ import annotations

import threading
import time

from bench.gateway.running import running
from bench.kafka.latency import read_command
from bench.kafka.reader import KafkaReader
from bench.process import process_cpu_s, resident_bytes, tree

CONSUMERS, WAIT_MS = 500, 500


def idle(seconds: float, consumers: int = CONSUMERS) -> dict[str, float]:
    """Each asks again every half second, as librdkafka does; half of connections_max is one network's."""
    settings = ("kafka.port=-1", "kafka.host=127.0.0.1", "gateway.port=0", f"kafka.connections_max={4 * consumers}")
    with running(*settings) as here:
        port = int(here.wait("listener.bound", protocol="kafka")["port"])
        server = next(pid for pid in tree(here.pid) if "kafka\0--for-broker" in read_command(pid))
        before = resident_bytes(server)
        readers = [KafkaReader(port) for _ in range(consumers)]
        stop = time.monotonic() + seconds + 2
        threads = [threading.Thread(target=wait, args=(each, stop), daemon=True) for each in readers]
        for each in threads:
            each.start()
        time.sleep(2)
        cpu, began = process_cpu_s(server), time.monotonic()
        time.sleep(seconds)
        used = (process_cpu_s(server) - cpu) / (time.monotonic() - began)
        memory = (resident_bytes(server) - before) / consumers
        for thread in threads:
            thread.join()
    return {f"{consumers} idle consumers, cores of the server": used, "memory of each, KiB": memory / 1024}


def wait(reader: KafkaReader, until: float) -> None:
    while time.monotonic() < until:
        reader.fetch("main", 0, 0, WAIT_MS)
    reader.close()
