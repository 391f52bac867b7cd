"""Old records fetched by one client, which counts them: how many the server gives for a second of its CPU."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench.kafka.logs import FOUR, write_log
from bench.kafka.reader import KafkaReader, count_of
from bench.peers.rumq import rumqd
from bench.process import process_cpu_s
from rumq.mqtt.properties import Properties

RECORDS = 2_000_000
VIEW = 'kafka.view=[{ name = "tenth", filter = "plant/3/#" }]'


class RunningServer(NamedTuple):
    port: int
    pid: int


@contextmanager
def door(root: str) -> Iterator[RunningServer]:
    """`rumqd kafka` as a user starts it, without a broker."""
    flags = ["--data", root, "--host", "127.0.0.1", "--port", "-1", "--set", VIEW]
    process = subprocess.Popen([*rumqd(), "kafka", *flags], stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        yield RunningServer(json.loads(line)["port"], process.pid)
    finally:
        process.terminate()
        process.wait(20)


def fetches(runs: int, records: int = RECORDS) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, properties in (("plain", Properties()), ("four headers", FOUR)):
        with tempfile.TemporaryDirectory() as folder:
            root = f"{folder}/data"
            write_log(root, records, properties)
            with door(root) as here:
                found |= read_all(here, name, "main", records, records, runs)
                if name == "plain":
                    found |= read_all(here, "view of one topic in ten, scanned", "tenth", records // 10, records, runs)
    return found


def read_all(here: RunningServer, name: str, topic: str, wanted: int, scanned: int, runs: int) -> dict[str, float]:
    """raises: RuntimeError where there are more or fewer records"""
    per_core, per_second = [], []
    for _ in range(runs):
        reader = KafkaReader(here.port)
        end, at, count = reader.end(topic, 0), 0, 0
        cpu, began = process_cpu_s(here.pid), time.monotonic()
        while at < end:
            batches, at = reader.fetch(topic, 0, at)
            count += sum(map(count_of, batches))
        per_second.append(scanned / (time.monotonic() - began))
        per_core.append(scanned / (process_cpu_s(here.pid) - cpu))
        reader.close()
        if count != wanted:
            raise RuntimeError(f"{name}: {count} records in place of {wanted}")
    return {
        f"{name}, records a second of the server's CPU": statistics.median(per_core),
        f"{name}, records a second": statistics.median(per_second),
    }
