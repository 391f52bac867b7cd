"""One Python client: messages streamed in until each has its id, and all of them subscribed from the begin.

Checked: every id of a topic once, from 1 on without a gap, in the answers and in the records."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from pathlib import Path

from bench.gateway.running import Running, running
from bench.grpc.caller import Caller, requests
from bench.process import process_cpu_s, read, tree
from rumq.services.generated import broker_service_pb2 as pb

COUNT, A_REQUEST, TOPICS, PAYLOAD_BYTES = 200_000, 500, 20, 64
ALONE = 200  # unary calls, one after the other


def streams(runs: int, seconds: float) -> dict[str, float]:
    """seconds: about that long for a run"""
    found: dict[str, list[float]] = {}
    count = max(A_REQUEST, int(COUNT * seconds / 2) // (A_REQUEST * TOPICS) * A_REQUEST * TOPICS)
    for _ in range(runs):
        with running("grpc.port=-1", "grpc.host=127.0.0.1", "gateway.port=0") as here:
            caller, server = Caller(port_of(here)), server_of(here)
            caller.publish(pb.PublishRequest(message=pb.Message(topic="warm")), wait_for_ready=True)
            for name, value in measured(caller, server, count).items():
                found.setdefault(name, []).append(value)
            caller.close()
    return {name: statistics.median(values) for name, values in found.items()}


def measured(caller: Caller, server: int, count: int) -> dict[str, float]:
    """raises: RuntimeError for an id that is wrong"""
    found: dict[str, float] = {}
    cpu, began = process_cpu_s(server), time.monotonic()
    ids: list[int] = []
    for answer in caller.publish_stream(requests(count, A_REQUEST, TOPICS, b"x" * PAYLOAD_BYTES)):
        if answer.refusals:
            raise RuntimeError(f"refused: {answer.refusals[0].detail}")
        ids += answer.ids
    took = time.monotonic() - began
    if ids != [n // TOPICS + 1 for n in range(count)]:
        raise RuntimeError("the ids of the answers are not those of the messages")
    found["streamed publish, msg/s"] = count / took
    found["streamed publish, us of CPU of the server a message"] = 1e6 * (process_cpu_s(server) - cpu) / count
    cpu, began = process_cpu_s(server), time.monotonic()
    seen: Counter[str] = Counter()
    start = pb.Start(position=pb.POSITION_EARLIEST)
    call = caller.subscribe(pb.SubscribeRequest(topics={"bench/#": start}))
    for answer in call:
        for record in answer.records:
            seen[record.topic] += 1
            if record.id != seen[record.topic]:
                raise RuntimeError(f"{record.topic}: {record.id} after {seen[record.topic] - 1}")
        if seen.total() >= count:
            break
    took = time.monotonic() - began
    call.cancel()
    found["Subscribe from 0, msg/s"] = count / took
    found["Subscribe from 0, us of CPU of the server a message"] = 1e6 * (process_cpu_s(server) - cpu) / count
    waits = []
    for _ in range(ALONE):
        began = time.monotonic()
        caller.publish(pb.PublishRequest(message=pb.Message(topic="alone", payload=b"x")))
        waits.append(time.monotonic() - began)
    waits.sort()
    found["Publish one by one, p50 ms"] = 1e3 * waits[len(waits) // 2]
    found["Publish one by one, p99 ms"] = 1e3 * waits[len(waits) * 99 // 100]
    return found


def port_of(here: Running) -> int:
    return int(here.wait("listener.bound", protocol="grpc")["port"])


def server_of(here: Running) -> int:
    """The pid of the gRPC server."""
    for pid in tree(here.pid):
        if "grpc\0--for-broker" in read(Path(f"/proc/{pid}/cmdline")):
            return pid
    raise RuntimeError("there is no gRPC server")
