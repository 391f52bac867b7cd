"""Many messages of one size that number themselves, sent and taken as fast as a plain socket can. MQTT 3.1.1.

Every frame has the same length, so that neither side has to look for the next. Knows no broker process."""

import socket
from collections.abc import Iterable

from tests.conformance import wire
from tests.conformance.peer import Address

TOPIC = "flood"
PAYLOAD_BYTES = 4000
AT_ONCE = 200
SECONDS_MAX = 60


class Flood:
    """One connection that publishes the flood, or takes it, with one QoS."""

    def __init__(self, at: Address, client_id: str, qos: int, *, lasting: bool = False) -> None:
        self.qos = qos
        self.frame_bytes = len(self._frame(0))
        self.socket = socket.create_connection(at, SECONDS_MAX)
        self.socket.sendall(wire.connect(client_id, 4, clean=not lasting, keep_alive=0))
        answer = self._exactly(4)
        assert answer[0] == 0x20 and answer[3] == 0, answer
        self.session_present = answer[2] == 1
        self._tail = b""

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            assert piece, f"the broker closed the connection after {len(data)} of {count} bytes"
            data += piece
        return data

    def _frame(self, number: int) -> bytes:
        payload = number.to_bytes(8, "big") + bytes(PAYLOAD_BYTES - 8)
        return wire.publish(TOPIC, payload, self.qos, 1 + number % 60_000 if self.qos else 0, version=4)

    def publish(self, numbers: range) -> None:
        """Send a message for each number; those of QoS 1 are all acknowledged when this returns."""
        for start in range(numbers.start, numbers.stop, AT_ONCE):
            batch = range(start, min(start + AT_ONCE, numbers.stop))
            self.socket.sendall(b"".join(map(self._frame, batch)))
            if self.qos:
                self._exactly(4 * len(batch))

    def subscribe(self) -> None:
        self.socket.sendall(wire.subscribe(1, [(TOPIC, self.qos)], version=4))
        assert self._exactly(5)[4] == self.qos

    def take(self, count: int) -> list[int]:
        """The numbers of the next `count` messages, in order of arrival, each acknowledged by its QoS."""
        numbers: list[int] = []
        while len(numbers) < count:
            piece = self.socket.recv(1 << 20)
            assert piece, f"the broker closed the connection after {len(numbers)} messages"
            self._tail += piece
            whole = min(len(self._tail) // self.frame_bytes, count - len(numbers))
            frames = [self._tail[n * self.frame_bytes : (n + 1) * self.frame_bytes] for n in range(whole)]
            self._tail = self._tail[whole * self.frame_bytes :]
            numbers += map(self._number, frames)
            if self.qos:
                self._acknowledge(frames)
        return numbers

    def _number(self, frame: bytes) -> int:
        assert frame[0] & 0xF7 == 0x30 | self.qos << 1, f"no such PUBLISH: {frame[:16].hex()}"
        return int.from_bytes(frame[-PAYLOAD_BYTES:][:8], "big")

    def _acknowledge(self, frames: Iterable[bytes]) -> None:
        at = self.frame_bytes - PAYLOAD_BYTES - 2
        self.socket.sendall(b"".join(b"\x40\x02" + frame[at : at + 2] for frame in frames))

    def die(self) -> None:
        """No DISCONNECT."""
        self.socket.close()
