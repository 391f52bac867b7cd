"""200 gRPC subscribers, live at 5,000 messages a second, and what MQTT's clients notice: the p99 of 500 pairs.

Runs with and without are interleaved. No subscriber may miss a record."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.gateway.running import Running, running
from bench.gateway.watched import first, loaded
from bench.grpc.caller import Caller
from bench.grpc.crowd import READY
from bench.grpc.streams import port_of
from rumq.services.generated import broker_service_pb2 as pb

SUBSCRIBERS, RATE, TICK_SECONDS = 200, 5_000, 0.02
MARGIN_SECONDS = 20.0  # a scenario takes its calibration and its start besides its run
PAIRS = ("pairs-500", "latency_p99_us")


def beside(runs: int, seconds: float, *, topics: int, realtime: bool = False) -> dict[str, float]:
    """topics: among which the subscribers and the messages are divided; 1: each gets all"""
    found: dict[str, list[float]] = {}
    for run in range(runs):
        for variant in ("alone", "beside")[:: 1 if run % 2 else -1]:
            with running("grpc.port=-1", "grpc.host=127.0.0.1", "gateway.port=0", "log.durability=process") as here:
                if realtime:
                    first(here.shards)
                if variant == "alone":
                    measured = loaded(here, PAIRS[0], seconds, realtime=realtime)
                else:
                    with crowded(here, topics, seconds, found):
                        measured = loaded(here, PAIRS[0], seconds, realtime=realtime)
                found.setdefault(f"MQTT, 500 pairs, p99 us: {variant}", []).append(measured[PAIRS[1]])
    middle = {name: statistics.median(values) for name, values in found.items()}
    middle["MQTT, 500 pairs, p99: beside / alone"] = (
        middle["MQTT, 500 pairs, p99 us: beside"] / middle["MQTT, 500 pairs, p99 us: alone"]
    )
    return middle


@contextmanager
def crowded(here: Running, topics: int, seconds: float, found: dict[str, list[float]]) -> Iterator[None]:
    """raises: RuntimeError for a record that was missed"""
    caller, ended, counts = Caller(port_of(here)), threading.Event(), [0.0]
    caller.publish(pb.PublishRequest(message=pb.Message(topic="warm")), wait_for_ready=True)
    numbers = (port_of(here), SUBSCRIBERS, topics, 3 * seconds + MARGIN_SECONDS)
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.grpc.crowd", *map(str, numbers)], stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert process.stdout is not None
    if process.stdout.readline().strip() != READY:
        raise RuntimeError("the subscribers did not begin")
    publisher = threading.Thread(target=publish, args=(caller, topics, ended, counts))
    publisher.start()
    began = time.monotonic()
    try:
        yield
    finally:
        ended.set()
        publisher.join()
        took = time.monotonic() - began
        said = json.loads(process.stdout.read())
        process.wait()
        caller.close()
    wanted = counts[0] * SUBSCRIBERS / topics
    found.setdefault("gRPC, published msg/s", []).append(counts[0] / took)
    for name, value in (("p50 ms", said["p50 ms"]), ("p99 ms", said["p99 ms"])):
        found.setdefault(f"gRPC, from the broker's time to the subscriber, {name}", []).append(value)
    if said["gaps"] or said["ended"] or said["received"] != wanted:
        raise RuntimeError(f"{SUBSCRIBERS} subscribers of {topics} topics: {said}, and {wanted:.0f} wanted")
    found.setdefault("gRPC, records received", []).append(said["received"])


def publish(caller: Caller, topics: int, ended: threading.Event, counts: list[float]) -> None:
    """At a rate, to the topics in turns; counts: becomes [messages]"""

    def requests() -> Iterator[pb.PublishStreamRequest]:
        began, sent = time.monotonic(), 0
        while not ended.wait(TICK_SECONDS):
            due = int((time.monotonic() - began) * RATE) // topics * topics
            messages = [pb.Message(topic=f"crowd/{n % topics}", payload=b"x" * 64) for n in range(sent, due)]
            if messages:
                yield pb.PublishStreamRequest(messages=messages)
            sent = due
        counts[0] = sent

    for _ in caller.publish_stream(requests()):
        pass
