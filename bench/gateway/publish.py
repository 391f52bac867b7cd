"""Publishing over REST: messages a second, and CPU time of the gateway and the shards for each."""

from __future__ import annotations

import json
import statistics
import threading
import time

import msgspec

from bench.gateway.running import Running, running

CONNECTIONS = 8  # requests under way
BATCH = 100


def publish(runs: int, seconds: float) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for kind in ("json", "msgpack"):
        for durability in ("process", "disk"):
            with running(f"log.durability={durability}") as here:
                post_for(here, body_of(kind), kind, 0.5)
                for _ in range(runs):
                    before = here.gateway_cpu_s(), here.shards_cpu_s()
                    rate, count = post_for(here, body_of(kind), kind, seconds)
                    spent = (
                        (here.gateway_cpu_s() - before[0]) / count,
                        (here.shards_cpu_s() - before[1]) / count,
                    )
                    name = f"{kind} {durability}"
                    found.setdefault(f"{name} msg/s", []).append(rate)
                    found.setdefault(f"{name} gateway us/msg", []).append(1e6 * spent[0])
                    found.setdefault(f"{name} shards us/msg", []).append(1e6 * spent[1])
    return {name: statistics.median(values) for name, values in found.items()}


def body_of(kind: str) -> bytes:
    """100 messages of QoS 1 with 64 bytes each, to ten topics."""
    messages: list[dict[str, object]] = [
        {"topic": f"bench/rest/{n % 10}", "payload": f"{n:064d}", "qos": 1} for n in range(BATCH)
    ]
    if kind == "json":
        return json.dumps(messages).encode()
    return msgspec.msgpack.encode([{**each, "payload": str(each["payload"]).encode()} for each in messages])


def post_for(here: Running, body: bytes, kind: str, seconds: float) -> tuple[float, int]:
    """(messages a second, messages). Each connection sends the next batch when the last is acknowledged."""
    counts = [0] * CONNECTIONS
    until = time.monotonic() + seconds

    def one(number: int) -> None:
        http = here.connection()
        request = http.posted("/api/v1/publish", body, f"application/{kind}")
        while time.monotonic() < until:
            http.socket.sendall(request)
            status, said = http.answer()
            if status != 200:
                raise RuntimeError(f"{status}: {said[:200]!r}")
            counts[number] += BATCH
        http.close()

    started = time.monotonic()
    threads = [threading.Thread(target=one, args=(n,)) for n in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - started), sum(counts)
