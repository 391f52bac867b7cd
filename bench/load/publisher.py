"""One publishing connection: what it may send, what is half sent, what is acknowledged. MQTT 3.1.1, 4.3.

Refuses to know the other publishers, the poll, the clock and the lead.
"""

import socket
from array import array

from bench.connections import BenchFault, publish_packet
from bench.kernels.check import Check
from bench.kernels.offer import Offer
from bench.load.load import FILLER, PAYLOAD_BYTES, ROUND_PUBLISHERS, STAMP_BYTES, Load

# One send: large enough that the system call is shared by a thousand messages, small enough for the L2 cache.
BATCH_BYTES = 128 * 1024
RECEIVE_BYTES = 64 * 1024


class Publisher:
    """`limit` messages of publisher `number`, through `connection`."""

    __slots__ = (
        "_check",
        "_out",
        "_tail",
        "_view",
        "blocked",
        "connection",
        "end",
        "limit",
        "number",
        "offer",
        "queued",
        "stamp",
        "start",
        "window",
    )

    def __init__(self, connection: socket.socket, load: Load, number: int, out_bytes: int = BATCH_BYTES) -> None:
        own = range(number, number + 1)
        names = load.topic_names(own)
        size = load.topic_bytes
        topics = [names[at : at + size] for at in range(0, len(names), size)]
        payload = bytes(STAMP_BYTES) + FILLER
        frames = [publish_packet(topic, load.qos, payload) for topic in topics]
        self.connection, self.number, self.window = connection, number, load.window
        self.offer = Offer(b"".join(frames), len(frames[0]), PAYLOAD_BYTES, load.qos > 0)
        self._check = Check(array("Q", [0]), names, size, load.topics, FILLER, array("Q"))
        self._out = bytearray(out_bytes)
        self._view = memoryview(self._out)
        self._tail = b""
        self.begin(0, 0)

    def begin(self, round_number: int, limit: int) -> None:
        self.offer.begin()
        self._check.begin(0)
        self.limit = limit
        self.stamp = round_number * ROUND_PUBLISHERS + self.number
        self.start = self.end = 0
        self.queued = self.blocked = False

    @property
    def sent(self) -> int:
        """Messages written to the socket's buffer or waiting to be."""
        return int(self.offer.sequence)

    @property
    def unacknowledged(self) -> int:
        return int(self.offer.sequence - self._check.completed) if self.window else 0

    @property
    def disordered(self) -> int:
        return int(self._check.disordered)

    def room(self) -> int:
        """Messages that the limit and the window allow now."""
        left = self.limit - self.sent
        return min(left, self.window - self.unacknowledged) if self.window else left

    def ended(self) -> bool:
        """Every message of the round is sent, and acknowledged where its QoS asks for that."""
        return self.sent == self.limit and self.start == self.end and not self.unacknowledged

    def write(self, count: int, now_ns: int = 0) -> int:
        """Put up to `count` messages behind what waits to be sent; return how many there was room for."""
        before = self.sent
        self.end = self.offer.write(self._out, self.end, count, self.stamp, now_ns)
        return self.sent - before

    def flush(self) -> bool:
        """Send what waits; whether all of it went."""
        while self.start < self.end:
            try:
                self.start += self.connection.send(self._view[self.start : self.end])
            except BlockingIOError:
                self.blocked = True
                return False
        self.start = self.end = 0
        self.blocked = False
        return True

    def receive(self, buffer: memoryview) -> None:
        """Take acknowledgements; the replies they ask for wait to be sent."""
        kept = len(self._tail)
        buffer[:kept] = self._tail
        # Not more than there is room for replies: four bytes for four.
        space = min(len(buffer) - kept, len(self._out) - self.end - 4)
        if space <= 0:
            return
        try:
            got = self.connection.recv_into(buffer[kept:], space)
        except BlockingIOError:
            return
        if not got:
            raise BenchFault(f"the broker closed the connection of publisher {self.number}")
        taken = self._check.take(buffer, kept + got, self._out, self.end, 0)
        self.end = self._check.out_end
        self._tail = bytes(buffer[taken : kept + got])
