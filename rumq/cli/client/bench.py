"""`rumqd bench`: how fast a broker takes and delivers messages from here; bounded in time and number.

`python -m bench` in the source tree compares brokers; this one measures the reader's own, over their network."""

from __future__ import annotations

import argparse
import json
import secrets
import time
from array import array
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from rumq.cli.client.connection_flags import add_connection_flags, connect_arguments, positive, url_topic, whole
from rumq.errors import ConfigError, Fault

if TYPE_CHECKING:
    from rumq.client import Client

ABOUT = """\
Publish messages to a broker and receive them again, and print how many a second it took, how many came, and how long
they were on their way. It ends after --count messages or --seconds, whatever comes first. Both ends are this one
process: where its core is busy all the time, that is the limit, and not the broker.
"""
EXAMPLES = """\
examples:
  rumqd bench                                    as many as go, for 10 s, QoS 1, 64 bytes
  rumqd bench --rate 1000 --seconds 30           1,000 a second: what latency at this load?
  rumqd bench -h broker.example -q 2 --size 1000 --topics 100
  rumqd bench --json | jq .latency_ms

A message that has not come 5 s after the last one was sent counts as missing.

exit status: 0 every message came, 1 some did not, or any other error; 2 invalid arguments
"""

COUNT_MAX, SECONDS_MAX, SIZE_MAX = 10_000_000, 3600, 1 << 20
BATCH = 200
STAMP_BYTES = 8  # of the clock, at the beginning of a payload
STRAGGLER_SECONDS = 5
PERCENTILES = (50, 90, 99, 99.9, 100)


@dataclass
class BenchFigures:
    """latencies_ns: of each message that came"""

    sent: int = 0
    acknowledged_seconds: float = 0.0
    received_seconds: float = 0.0
    latencies_ns: array[int] = field(default_factory=lambda: array("q"))
    is_sent: bool = False


@dataclass(frozen=True)
class BenchReport:
    """rates: messages a second; latency_ms: percentile -> milliseconds"""

    sent: int
    received: int
    published_per_second: float
    received_per_second: float
    latency_ms: dict[str, float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_connection_flags(parser)
    parser.add_argument(
        "-t", "--topic", metavar="TOPIC", help="published to, and below it [rumq/bench/ and a random number]"
    )
    parser.add_argument("-q", "--qos", type=int, choices=(0, 1, 2), default=1, help="[1]")
    parser.add_argument("-c", "--count", type=count, default=1_000_000, metavar="N", help="messages at most [1000000]")
    parser.add_argument("--seconds", type=seconds, default=10, metavar="N", help="that long at most [10]")
    parser.add_argument("--size", type=size, default=64, metavar="BYTES", help="of a payload, 8 at least [64]")
    parser.add_argument("--topics", type=positive, default=1, metavar="N", help="below the topic, in turn [1]")
    parser.add_argument("--rate", type=positive, metavar="N", help="messages a second [as many as go]")
    parser.add_argument("--json", action="store_true", help="print one object")


def count(text: str) -> int:
    return whole(text, 1, COUNT_MAX)


def seconds(text: str) -> int:
    return whole(text, 1, SECONDS_MAX)


def size(text: str) -> int:
    return whole(text, STAMP_BYTES, SIZE_MAX)


def run(args: argparse.Namespace) -> int:
    topic = args.topic or url_topic(args) or f"rumq/bench/{secrets.token_hex(4)}"
    import trio

    from rumq.mqtt.errors import TopicNameInvalid
    from rumq.mqtt.topics import check_topic_name

    try:
        check_topic_name(topic)
    except TopicNameInvalid as fault:
        raise ConfigError(Fault("bench", "", "", fault.message)) from None
    figures = BenchFigures()
    trio.run(measure, args, topic, figures)
    report = reported(figures)
    print(json.dumps(asdict(report)) if args.json else shown(report, args))
    return 0 if report.received == report.sent else 1


async def measure(args: argparse.Namespace, topic: str, figures: BenchFigures) -> None:
    """One connection publishes, another one receives."""
    import trio

    from rumq.client import connect

    arguments = connect_arguments(args)
    receiving = {**arguments, "client_id": f"{args.id}-receiver" if args.id else "", "receive_maximum": 10_000}
    async with connect(**receiving) as receiver, connect(**arguments) as publisher:
        await receiver.subscribe(f"{topic}/#", qos=args.qos)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive, receiver, figures, nursery.cancel_scope)
            await publish(publisher, args, topic, figures)
            figures.is_sent = True
            if len(figures.latencies_ns) >= figures.sent:
                nursery.cancel_scope.cancel()
            nursery.cancel_scope.deadline = trio.current_time() + STRAGGLER_SECONDS
        await receiver.unsubscribe(f"{topic}/#")


async def publish(client: Client, args: argparse.Namespace, topic: str, figures: BenchFigures) -> None:
    import trio

    from rumq.client import Outgoing

    begin = trio.current_time()
    padding = bytes(args.size - STAMP_BYTES)
    topics = [f"{topic}/{number}" for number in range(args.topics)]
    at_once = BATCH if args.rate is None else max(1, min(BATCH, args.rate // 100))
    while figures.sent < args.count and trio.current_time() < begin + args.seconds:
        if args.rate is not None:
            await trio.sleep_until(begin + figures.sent / args.rate)
        batch = []
        for number in range(figures.sent, min(figures.sent + at_once, args.count)):
            stamp = time.monotonic_ns().to_bytes(STAMP_BYTES)
            batch.append(Outgoing(topics[number % len(topics)], stamp + padding, args.qos))
        await client.publish_batch(batch)
        figures.sent += len(batch)
    figures.acknowledged_seconds = trio.current_time() - begin


async def receive(client: Client, figures: BenchFigures, scope: object) -> None:
    import trio

    assert isinstance(scope, trio.CancelScope)
    begin = trio.current_time()
    while not figures.is_sent or len(figures.latencies_ns) < figures.sent:
        messages = await client.receive_batch()
        now = time.monotonic_ns()
        figures.latencies_ns.extend(now - int.from_bytes(message.payload[:STAMP_BYTES]) for message in messages)
        figures.received_seconds = trio.current_time() - begin
    scope.cancel()


def reported(figures: BenchFigures) -> BenchReport:
    ordered = sorted(figures.latencies_ns)
    latency = {f"p{each:g}" if each < 100 else "max": percentile(ordered, each) for each in PERCENTILES}
    received = len(ordered)
    return BenchReport(
        figures.sent,
        received,
        round(figures.sent / max(figures.acknowledged_seconds, 1e-9), 1),
        round(received / max(figures.received_seconds, 1e-9), 1),
        latency if ordered else {},
    )


def percentile(ordered: list[int], each: float) -> float:
    """In milliseconds."""
    if not ordered:
        return 0.0
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * each / 100))] / 1e6, 3)


def shown(report: BenchReport, args: argparse.Namespace) -> str:
    kind = f"{report.sent} messages of {args.size} bytes, QoS {args.qos}"
    lines = [
        f"published  {kind}: {report.published_per_second:.0f} a second",
        f"received   {report.received}: {report.received_per_second:.0f} a second",
    ]
    if report.sent > report.received:
        lines.append(f"missing    {report.sent - report.received}")
    if report.latency_ms:
        found = ", ".join(f"{name} {value:g}" for name, value in report.latency_ms.items())
        lines.append(f"latency    {found} ms, from before publish to after receive")
    return "\n".join(lines)
