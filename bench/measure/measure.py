"""One run of one scenario against one broker: figures. Knows no peer, no median, no table."""

import tempfile
from contextlib import nullcontext

from bench.connections import BenchFault
from bench.load.generator import Generator
from bench.load.load import Heard, Published
from bench.measure.disk import fdatasync_ns
from bench.measure.figures import Figures, cpu, memory, percentiles
from bench.measure.measure_connections import During, connects, idle, pings
from bench.measure.redelivery import redelivery
from bench.peers.peer import Broker
from bench.suite.scenario import Scenario

# A first look with few messages in flight, so that a slow broker is not buried; then the real thing.
FIRST_LOOK_S, FIRST_LOOK_LEAD = 0.3, 1_000
SECOND_LOOK_S, FAST_PER_S = 0.4, 50_000
ROUND_FACTOR_MAX = 4
FILLED_TOPICS, FILL_S = 10_000, 60.0


def measure(
    scenario: Scenario,
    broker: Broker,
    seconds: float,
    messages: int = 0,
    workers: tuple[int, int] = (1, 1),
    during: During = nullcontext,
) -> Figures:
    """Run `scenario` once. raises: BenchFault

    messages: of each publisher; 0: as many as a short calibration says go into `seconds`
    during: entered while what is measured goes on, without set-up and calibration
    """
    if scenario.kind == "start":
        return {"start_s": broker.start_s, "rss_bytes": memory(broker)}
    if scenario.kind == "idle":
        return idle(scenario.load, broker)
    if scenario.kind == "ping":
        return pings(scenario.load, broker, seconds, during)
    if scenario.kind == "connect":
        return connects(scenario.load, broker, seconds, during)
    if scenario.kind == "redelivery":
        of_broker, sent, got = redelivery(scenario.load, broker, during)
        return traffic([sent], [got]) | of_broker
    with Generator(scenario.load, broker.address, workers) as generator:
        fill(generator)
        wanted = calibrate(generator, seconds)
        messages = messages or wanted
        cpu_before_s, rss_before = cpu(broker), memory(broker)
        with during():
            published, heard = generator.run(messages, seconds * ROUND_FACTOR_MAX)
        cpu_s = cpu(broker) - cpu_before_s
        figures = traffic(published, heard)
        if scenario.load.alone:
            figures |= beyond_sync(figures)
        figures["rss_bytes"], figures["rss_growth_bytes"] = memory(broker), memory(broker) - rss_before
    if broker.pid is not None:
        figures["cpu_us_per_message"] = 1e6 * cpu_s / max(1, figures["sent"])
        figures["cpu_us_per_delivery"] = 1e6 * cpu_s / max(1, figures["delivered"])
        figures["broker_cores"] = cpu_s / figures["elapsed_s"]
    figures["messages_per_publisher"] = messages
    return figures


def fill(generator: Generator) -> None:
    """Have the broker know every topic before anything is measured, where there are many."""
    if generator.load.topics >= FILLED_TOPICS:
        generator.run(generator.load.topics, FILL_S)


def calibrate(generator: Generator, seconds: float) -> int:
    """How many messages of each publisher go into `seconds`; warms the broker up by the way."""
    load = generator.load
    if load.rate:
        generator.run(max(1, round(load.rate * FIRST_LOOK_S / load.publishers)), FIRST_LOOK_S * 2)
        return max(1, round(load.rate * seconds / load.publishers))
    lead = min(FIRST_LOOK_LEAD, load.lead)
    rate = messages_per_s(*generator.run(2**40, min(seconds, FIRST_LOOK_S), lead))
    if rate > FAST_PER_S:
        rate = messages_per_s(*generator.run(2**40, min(seconds, SECOND_LOOK_S)))
    return max(1, round(rate * seconds / load.publishers))


def messages_per_s(published: list[Published], heard: list[Heard]) -> float:
    figures = traffic(published, heard)
    return figures["sent"] / figures["elapsed_s"]


def traffic(published: list[Published], heard: list[Heard]) -> Figures:
    """From the first message sent to the last one received, or sent or acknowledged if that is later.

    Later is what matters where a broker stops delivering: its rate must not be that of its good moments.
    """
    started_ns = min(one.started_ns for one in published)
    ended_ns = max(*(one.ended_ns for one in published), *(one.ended_ns for one in heard), started_ns)
    sent = sum(one.sent for one in published)
    delivered = sum(one.received - one.late for one in heard)
    unacknowledged = sum(one.unacknowledged for one in published)
    elapsed_s = max(1, ended_ns - started_ns) / 1e9
    if not sent:
        raise BenchFault("not one message could be sent")
    figures = {
        "elapsed_s": elapsed_s,
        "sent": sent,
        "delivered": delivered,
        "published_per_s": sent / elapsed_s,
        "delivered_per_s": delivered / elapsed_s,
        "lost": sum(one.missing for one in heard),
        "out_of_order_or_twice": sum(one.late for one in heard),
        "corrupt": sum(one.corrupt for one in heard),
        "stray": sum(one.stray for one in heard),
        "redelivered": sum(one.redelivered for one in heard),
        "unacknowledged": unacknowledged,
        "acknowledged_out_of_order": sum(one.disordered for one in published),
        "generator_late_ms_max": max(one.late_ns_max for one in published) / 1e6,
        "publishing_cores": sum(one.cpu_s for one in published) / elapsed_s,
        "subscribing_cores": sum(one.cpu_s for one in heard) / elapsed_s,
    }
    return (
        figures
        | percentiles("latency", (one.latencies_ns for one in heard))
        | percentiles("generator_late", (one.late_ns for one in published))
        | percentiles("acknowledged", (one.acknowledged_ns for one in published))
    )


def beyond_sync(figures: Figures) -> Figures:
    """What the disk takes for a sync right after the run, and what an acknowledgement took beyond it, in µs."""
    disk = percentiles("fdatasync", [fdatasync_ns(tempfile.gettempdir())])
    beyond_us = figures["acknowledged_p50_us"] - disk["fdatasync_p50_us"]
    # Faster than the disk: the broker does not wait for it, or something else kept the disk busy afterwards.
    return disk | ({"beyond_sync_p50_us": beyond_us} if beyond_us >= 0 else {})
