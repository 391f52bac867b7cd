"""The publishing worker's round at an ordinary load: an open loop over many sockets, in a kernel."""

import ctypes
import socket
import time
from array import array
from collections.abc import Sequence

from bench.connections import BenchFault, publish_packet
from bench.kernels.pace import Pacer, Schedule
from bench.load.acknowledgements import Acknowledgements
from bench.load.load import FILLER, PAYLOAD_BYTES, ROUND_PUBLISHERS, STAMP_BYTES, Load, Published, Round
from bench.progress import Progress

# Between the decision to begin and the first message: the first burst is not late by the time this takes.
LEAD_IN_NS = 2_000_000
LATE_SAMPLES_MAX = 1_000_000
PR_SET_TIMERSLACK = 29


class OpenLoop:
    """The publishers `own` of `load`, one message of each in a period of `load.publishers / load.rate` seconds."""

    def __init__(self, connections: Sequence[socket.socket], load: Load, own: range) -> None:
        if load.qos > 1 or load.topics != 1:
            raise ValueError("an open loop has one topic a publisher, at QoS 0 or 1")
        names, size = load.topic_names(own), load.topic_bytes
        topics = [names[at : at + size] for at in range(0, len(names), size)]
        frames = [publish_packet(topic, load.qos, bytes(STAMP_BYTES) + FILLER) for topic in topics]
        self.schedule = schedule_of(load, len(own))
        self.own = own
        self.sent, self.late_ns = array("q", bytes(8 * len(own))), array("Q", bytes(8 * LATE_SAMPLES_MAX))
        descriptors = array("i", [connection.fileno() for connection in connections])
        self.pacer = Pacer(
            self.schedule, descriptors, b"".join(frames), PAYLOAD_BYTES, self.sent, self.late_ns, load.qos > 0
        )
        self.answers = Acknowledgements(connections, load, own) if load.qos else None
        wake_on_time()

    def run_round(self, now: Round, progress: Progress, slot: int) -> Published:
        """Publish one round; the shared counters say what was sent once it returns. raises: BenchFault"""
        if self.answers:
            self.answers.begin()
        cpu_s, start_ns = time.process_time(), time.monotonic_ns() + LEAD_IN_NS
        stop_ns = start_ns + int(now.seconds_max * 1e9)
        try:
            self.pacer.run(now.number * ROUND_PUBLISHERS + self.own.start, now.messages, start_ns, stop_ns)
        except OSError as fault:
            raise BenchFault(str(fault)) from fault
        # The last period counts whole, so that the rate and the broker's CPU time are those of whole periods.
        period_end_ns = min(stop_ns, start_ns + now.messages * self.schedule.period_ns)
        time.sleep(max(0, period_end_ns - time.monotonic_ns()) / 1e9)
        sent = sum(self.sent)
        if self.answers:
            self.answers.wait(sent)
        ended_ns = time.monotonic_ns()
        for number, count in zip(self.own, self.sent, strict=True):
            progress.sent[number] = count
        progress.ended[slot] = 1
        late_ns = self.late_ns[: self.pacer.late]
        return Published(
            started_ns=start_ns, ended_ns=ended_ns, sent=sent,
            unacknowledged=sent - self.answers.completed if self.answers else 0,
            disordered=self.answers.disordered if self.answers else 0,
            late_ns_max=max(late_ns, default=0), cpu_s=time.process_time() - cpu_s, late_ns=late_ns.tobytes(),
        )  # fmt: skip


def schedule_of(load: Load, own: int) -> Schedule:
    """Of `own` publishers: a worker spreads its own ones over the period, whatever other workers do."""
    return Schedule(own, 10**9 * load.publishers // load.rate, load.phase == "burst")


def wake_on_time() -> None:
    """Linux wakes a sleeper up to 50 µs late to save power: not this process. prctl(2)"""
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
