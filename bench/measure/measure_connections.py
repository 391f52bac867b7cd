"""One run of connections that send no message: idle ones, ones that ping, ones that come."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from bench.connections import BenchFault
from bench.load.generator import ROUND_EXTRA_S, Worker, idle_connections, one_worker
from bench.load.load import Load, Published, Round
from bench.measure.figures import Figures, cpu, memory, percentiles
from bench.peers.peer import Broker

# Makes what is entered while a run is measured: a profiler, or nothing.
During = Callable[[], AbstractContextManager[None]]
SETTLE_S = 0.5


def idle(load: Load, broker: Broker) -> Figures:
    # The first connections make what all share.
    with idle_connections(10, broker.address):
        time.sleep(SETTLE_S)
    before = memory(broker)
    with idle_connections(load.publishers, broker.address):
        time.sleep(SETTLE_S)
        growth = memory(broker) - before
    return {"bytes_per_connection": growth / load.publishers, "rss_bytes": before + growth}


def pings(load: Load, broker: Broker, seconds: float, during: During = nullcontext) -> Figures:
    """All connections of `load`, of which `load.rate` a second ping."""
    with one_worker("ping", load, load.publishers, broker.address) as worker:
        time.sleep(SETTLE_S)
        return at_a_rate(worker, broker, round(load.rate * seconds), seconds, "ping", during)


def connects(load: Load, broker: Broker, seconds: float, during: During = nullcontext) -> Figures:
    """The last connections of `load`, at its rate for `seconds`; those before are open already, fast."""
    coming = min(load.publishers, max(1, round(load.rate * seconds)))
    with one_worker("connect", load, load.publishers - coming, broker.address) as worker:
        time.sleep(SETTLE_S)
        return at_a_rate(worker, broker, coming, seconds, "connect", during)


def at_a_rate(worker: Worker, broker: Broker, count: int, seconds: float, what: str, during: During) -> Figures:
    cpu_before_s = cpu(broker)
    with during():
        worker.say(Round(number=1, messages=count, seconds_max=seconds, lead=0))
        report = worker.hear(seconds + ROUND_EXTRA_S)
    cpu_s = cpu(broker) - cpu_before_s
    if not isinstance(report, Published) or not report.sent:
        raise BenchFault(f"{what}: not one was answered")
    elapsed_s = (report.ended_ns - report.started_ns) / 1e9
    figures = {
        "elapsed_s": elapsed_s,
        "sent": report.sent,
        "unacknowledged": report.unacknowledged,
        "rss_bytes": memory(broker),
        f"{what}s_per_s": report.sent / elapsed_s,
        "publishing_cores": report.cpu_s / elapsed_s,
    }
    if broker.pid is not None:
        figures |= {f"cpu_us_per_{what}": 1e6 * cpu_s / report.sent, "cpu_ms_per_s": 1e3 * cpu_s / elapsed_s}
    late = percentiles("generator_late", [report.late_ns])
    return figures | late | percentiles("answered", [report.acknowledged_ns])
