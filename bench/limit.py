"""The bench's own limit: `python -m bench limit`. What it can offer, and what it can receive and check.

In one process, without sockets: the kernels. Then through `bench/peers/wire.py`, which only copies bytes.
"""

import time
from array import array
from collections.abc import Callable, Iterator

from bench.connections import publish_packet
from bench.kernels import check, offer, pace
from bench.load.load import FILLER, PAYLOAD_BYTES, STAMP_BYTES, TOPIC_BYTES, Load, topic_name
from bench.measure.figures import Figures
from bench.measure.measure import measure
from bench.peers.peer import running
from bench.peers.wire import Wire
from bench.suite.scenario import Scenario
from bench.suite.scenarios import SCENARIOS

BATCH_BYTES = 128 * 1024
KERNEL_S = 0.5
# To one publisher with nobody subscribed the wire is a sink.
SINK = Scenario("sink", "one publisher, thrown away", Load(publishers=1, subscribers=0, lead=2**62))
THROUGH_WIRE = ("one-to-one-qos0", "ten-to-ten-qos0", "fan-out-qos0", "thousand-topics-qos0")


def run_limit(seconds: float, tell: Callable[[str], None] = print) -> None:
    tell(f"kernels: {'compiled' if compiled() else 'plain Python, which is far too slow to measure with'}")
    write_ns, check_ns = kernel_ns()
    tell(f"writing a frame {write_ns:.1f} ns, checking one {check_ns:.1f} ns: {1e3 / write_ns:,.0f} and "
         f"{1e3 / check_ns:,.0f} million a second on a core")  # fmt: skip
    tell(f"{'through the wire':34}{'offered/s':>14}{'checked/s':>14}{'per publishing core':>21}"
         f"{'per subscribing core':>21}{'wire cores':>12}{'lost':>6}")  # fmt: skip
    for title, figures in through_wire(seconds):
        tell(
            f"{title:34}{figures['published_per_s']:>14,.0f}{figures['delivered_per_s']:>14,.0f}"
            f"{per_core(figures['published_per_s'], figures['publishing_cores']):>21}"
            f"{per_core(figures['delivered_per_s'], figures['subscribing_cores']):>21}"
            f"{figures['broker_cores']:>12.2f}{figures['lost']:>6,.0f}"
        )


def per_core(rate: float, cores: float) -> str:
    return f"{rate / cores:,.0f}" if rate and cores else "-"


def compiled() -> bool:
    return not any(str(kernel.__file__).endswith(".py") for kernel in (offer, check, pace))


def kernel_ns() -> tuple[float, float]:
    """Nanoseconds to write one frame, and to check it."""
    topic = topic_name(0).encode()
    frame = publish_packet(topic, 0, bytes(STAMP_BYTES) + FILLER)
    writer = offer.Offer(frame, len(frame), PAYLOAD_BYTES, False)
    checker = check.Check(array("Q", [0]), topic, TOPIC_BYTES, 1, FILLER, array("Q"))
    out, replies = bytearray(BATCH_BYTES), bytearray(BATCH_BYTES)
    write_ns = check_ns = 0
    until = time.monotonic() + KERNEL_S
    while time.monotonic() < until:
        started = time.perf_counter_ns()
        end = writer.write(out, 0, BATCH_BYTES, 0, 0)
        written = time.perf_counter_ns()
        checker.take(out, end, replies, 0, 0)
        check_ns += time.perf_counter_ns() - written
        write_ns += written - started
    assert checker.received == writer.sequence, "the kernels disagree"
    return write_ns / writer.sequence, check_ns / writer.sequence


def through_wire(seconds: float) -> Iterator[tuple[str, Figures]]:
    for scenario in (SINK, *(SCENARIOS[key] for key in THROUGH_WIRE)):
        with running(Wire(), scenario.load) as broker:
            yield scenario.title, measure(scenario, broker, seconds)
