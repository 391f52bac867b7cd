"""The publishing worker's round of a message that comes alone: QoS 1, the next one once the PUBACK has come."""

import socket
import struct
import time
from array import array

from bench.connections import BenchFault
from bench.load.load import Load, Published, Round
from bench.load.publisher import RECEIVE_BYTES, Publisher
from bench.progress import Progress

ANSWER_S = 5
OUT_BYTES = 1024


class Alone:
    """One publisher; times each message from before `send` to after its PUBACK was received."""

    def __init__(self, connection: socket.socket, load: Load) -> None:
        if load.publishers != 1 or load.qos != 1 or load.window != 1:
            raise ValueError("one at a time: expected one publisher, QoS 1, a window of 1")
        # Blocking, but not for ever: Python's own timeout would cost a poll() for each receive.
        connection.settimeout(None)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", ANSWER_S, 0))
        self.publisher = Publisher(connection, load, 0, OUT_BYTES)
        self.buffer = memoryview(bytearray(RECEIVE_BYTES))

    def run_round(self, now: Round, progress: Progress, slot: int) -> Published:
        """Publish one round; the shared counters say what was sent once it returns. raises: BenchFault, OSError"""
        publisher, took_ns = self.publisher, array("Q")
        publisher.begin(now.number, now.messages)
        cpu_s, started_ns = time.process_time(), time.monotonic_ns()
        stop_ns = started_ns + int(now.seconds_max * 1e9)
        sent_ns = started_ns
        while publisher.sent < now.messages and sent_ns < stop_ns:
            publisher.write(1, sent_ns)
            publisher.flush()
            while publisher.unacknowledged:
                publisher.receive(self.buffer)
                if time.monotonic_ns() - sent_ns > ANSWER_S * 10**9:
                    raise BenchFault(f"no PUBACK within {ANSWER_S} s")
            received_ns = time.monotonic_ns()
            took_ns.append(received_ns - sent_ns)
            sent_ns = received_ns
        progress.sent[0] = publisher.sent
        progress.ended[slot] = 1
        return Published(
            started_ns=started_ns, ended_ns=time.monotonic_ns(), sent=publisher.sent,
            unacknowledged=publisher.unacknowledged, disordered=publisher.disordered, late_ns_max=0,
            cpu_s=time.process_time() - cpu_s, acknowledged_ns=took_ns.tobytes(),
        )  # fmt: skip
