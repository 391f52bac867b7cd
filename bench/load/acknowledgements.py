"""What publishers of an open loop at QoS 1 are answered, taken by a thread beside the one that sends. MQTT 3.1.1, 3.4.

An open loop never waits for them: they are counted, checked for their order, and taken off the sockets."""

import select
import socket
import threading
import time
from array import array
from collections.abc import Sequence

from bench.connections import BenchFault
from bench.kernels.check import Check
from bench.load.load import FILLER, Load

RECEIVE_BYTES = 4096
POLL_S = 0.01
# After the last message was sent: for the last acknowledgements.
QUIET_S = 1.0


class Acknowledgements:
    """Of one worker's publishers `own`. `begin`, then `wait` once all is sent."""

    def __init__(self, connections: Sequence[socket.socket], load: Load, own: range) -> None:
        self.epoll = select.epoll()
        self.ends: dict[int, tuple[socket.socket, Check]] = {}
        self.tails: dict[int, bytes] = {}
        for connection, number in zip(connections, own, strict=True):
            names = load.topic_names(range(number, number + 1))
            check = Check(array("Q", [0]), names, load.topic_bytes, load.topics, FILLER, array("Q"))
            self.ends[connection.fileno()] = connection, check
            self.epoll.register(connection, select.EPOLLIN)
        self.buffer, self.replies = memoryview(bytearray(RECEIVE_BYTES)), bytearray(RECEIVE_BYTES + 4)
        self.wanted: int | None = None
        self.fault = ""

    def begin(self) -> None:
        for _, check in self.ends.values():
            check.begin(0)
        self.wanted, self.fault = None, ""
        self.thread = threading.Thread(target=self._take_all, daemon=True)
        self.thread.start()

    def wait(self, sent: int) -> None:
        """Until `sent` are acknowledged, or nothing more comes. raises: BenchFault where a connection was closed"""
        self.wanted = sent
        self.thread.join()
        if self.fault:
            raise BenchFault(self.fault)

    @property
    def completed(self) -> int:
        return sum(check.completed for _, check in self.ends.values())

    @property
    def disordered(self) -> int:
        return sum(check.disordered for _, check in self.ends.values())

    def _take_all(self) -> None:
        got, last_at = 0, time.monotonic()
        while self.wanted is None or got < self.wanted:
            events = self.epoll.poll(POLL_S)
            for descriptor, _ in events:
                got += self.take(descriptor)
            if events or self.wanted is None:
                last_at = time.monotonic()
            if self.fault or time.monotonic() - last_at > QUIET_S:
                return

    def take(self, descriptor: int) -> int:
        """Receive once from the socket `descriptor`; return how many it were."""
        connection, check = self.ends[descriptor]
        tail = self.tails.get(descriptor, b"")
        self.buffer[: len(tail)] = tail
        try:
            received = connection.recv_into(self.buffer[len(tail) :])
        except BlockingIOError:
            return 0
        except OSError as fault:
            self.fault = f"a publisher's connection: {fault}"
            return 0
        if not received:
            self.fault = "the broker closed the connection of a publisher"
        before, end = check.completed, len(tail) + received
        taken = check.take(self.buffer, end, self.replies, 0, 0)
        self.tails[descriptor] = bytes(self.buffer[taken:end])
        return int(check.completed - before)
