"""The scenarios of an ordinary load: many connections, each with a message now and then. Payloads of 64 bytes."""

from collections.abc import Iterator

import msgspec

from bench.load.load import Load
from bench.suite.scenario import Scenario

OPEN_FIGURES = (
    "cpu_us_per_delivery", "latency_p50_us", "latency_p99_us", "latency_p999_us", "generator_late_p99_us",
    "delivered_per_s", "lost",
)  # fmt: skip
ALONE_FIGURES = (
    "cpu_us_per_delivery", "acknowledged_p50_us", "acknowledged_p99_us", "acknowledged_p999_us", "delivered_per_s",
    "lost",
)  # fmt: skip


def both_phases(key: str, title: str, load: Load) -> Iterator[Scenario]:
    """`key` has all publishers in phase, in bursts; `key`-even has them spread evenly over the period."""
    in_phase, even = ({"phase": phase, "latency": True} for phase in ("burst", "even"))
    yield Scenario(key, f"{title}, bursts", msgspec.structs.replace(load, **in_phase), OPEN_FIGURES)
    yield Scenario(f"{key}-even", f"{title}, even", msgspec.structs.replace(load, **even), OPEN_FIGURES)


def pairs(count: int, rate: int) -> Iterator[Scenario]:
    load = Load(publishers=count, subscribers=count, spread="pairs", rate=rate)
    return both_phases(f"pairs-{count}", f"{count:,} pairs at {rate:,} msg/s", load)


# As devices do that have nothing to say: each of them pings every ten seconds, and the broker watches their keep alive.
PINGING = Load(publishers=10_000, subscribers=0, rate=1_000, keep_alive_s=30)
PING_FIGURES = ("cpu_us_per_ping", "cpu_ms_per_s", "answered_p50_us", "answered_p99_us", "answered_p999_us")

ALONE = Load(publishers=1, subscribers=1, qos=1, window=1, alone=True, latency=True)

ORDINARY: tuple[Scenario, ...] = (
    *pairs(50, 10_000),
    *pairs(500, 5_000),
    *pairs(4_000, 10_000),
    *both_phases(
        "fan-in-10000", "10,000 to one at 20,000 msg/s", Load(publishers=10_000, subscribers=1, rate=20_000)
    ),
    Scenario(
        "one-at-a-time", "QoS 1 one at a time, disk",
        msgspec.structs.replace(ALONE, durability="disk"),
        (*ALONE_FIGURES, "fdatasync_p50_us", "beyond_sync_p50_us"),
    ),
    Scenario(
        "one-at-a-time-process", "QoS 1 one at a time, process",
        msgspec.structs.replace(ALONE, durability="process"), ALONE_FIGURES,
    ),
    Scenario("idle-pinging", "10,000 connections, a ping each 10 s", PINGING, PING_FIGURES, "ping"),
)  # fmt: skip
