"""MQTT packets over one byte stream: encode and send, receive and decode."""

import ssl
from collections.abc import Awaitable, Callable

import trio

from rumq.client.transport.tls_faults import sentence
from rumq.errors import ConnectionLost, Refused
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.packets import Disconnect, Packet, Puback, Pubrec
from rumq.mqtt.reasons import Reason

OpenStream = Callable[[], Awaitable[trio.abc.Stream]]
OUTPUT_BYTES_MAX = 2**20  # publishers wait above this
RECEIVE_BYTES_MAX = 2**18


class PacketStream:
    """Packets over a stream. `send` never waits; packets leave while the task `write` runs."""

    def __init__(self, stream: trio.abc.Stream, version: int) -> None:
        self._stream, self._version = stream, version
        self._frames = FrameReader(version=version)
        self._decoded: list[Packet] = []
        self._fault: MqttFault | None = None
        self._output = bytearray()
        self._writing = 0
        self._disconnecting = False
        self.closed = False
        self._changed = trio.lowlevel.ParkingLot()
        self.packet_bytes_max = 2**28 + 4  # the broker's, MQTT 5.0, 3.2.2.3.6
        self.received_at = trio.current_time()

    @property
    def unsent_bytes(self) -> int:
        return len(self._output) + self._writing

    def send(self, packet: Packet) -> None:
        """Queue a packet; ignored after DISCONNECT (MQTT 5.0, 3.14.4). raises: Refused for one too large."""
        if self._disconnecting:
            return
        self.send_encoded(encode(packet, self._version), type(packet).__name__.upper())
        self._disconnecting = isinstance(packet, Disconnect)

    def send_packets(self, encoded: bytes) -> None:
        """Queue the bytes of many, each no larger than the broker takes."""
        if not self._disconnecting:
            self._output += encoded
            self._changed.unpark_all()

    def send_encoded(self, encoded: bytes | bytearray, name: str = "PUBLISH") -> None:
        """Queue the bytes of a packet. raises: Refused for one too large"""
        if self._disconnecting:
            return
        if len(encoded) > self.packet_bytes_max:
            limit = f"{len(encoded)} bytes, the broker's maximum is {self.packet_bytes_max}"
            raise Refused(name, Reason.PACKET_TOO_LARGE, limit)
        self._output += encoded
        self._changed.unpark_all()

    async def receive(self) -> list[Packet]:
        """Whole packets, at least one; raises ConnectionLost, or MqttFault after the valid packets before it."""
        while not self._decoded:
            if self._fault is not None:
                raise self._fault
            chunk = await self.receive_bytes()
            self._frames.receive(chunk)
            try:
                for first_byte, body in self._frames.frames():
                    self._decoded.append(decode(first_byte, body, self._version))
            except MqttFault as fault:
                self._fault = fault
        packets, self._decoded = self._decoded, []
        return packets

    async def receive_bytes(self) -> bytes:
        """Bytes as they come, for who splits them; raises ConnectionLost."""
        try:
            chunk = await self._stream.receive_some(RECEIVE_BYTES_MAX)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
            raise ConnectionLost(failure_text(fault)) from fault
        if not chunk:
            raise ConnectionLost("the broker closed it")
        self.received_at = trio.current_time()
        return bytes(chunk)

    def take_received(self) -> tuple[list[Packet], bytes]:
        """Packets, and the beginning of one, that `receive` would begin with; raises MqttFault."""
        if self._fault is not None:
            raise self._fault
        packets, self._decoded = self._decoded, []
        return packets, self._frames.take_buffered()

    def unread(self, packets: list[Packet]) -> None:
        """Let the next `receive` return these first."""
        self._decoded = packets + self._decoded

    async def write(self) -> None:
        """Send queued packets until cancelled; raises ConnectionLost."""
        while True:
            while not self._output:
                await self._changed.park()
            await self.flush()

    async def flush(self) -> None:
        """Send the packets queued so far; raises ConnectionLost."""
        chunk, self._output = self._output, bytearray()
        self._writing = len(chunk)
        try:
            await self._stream.send_all(chunk)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
            raise ConnectionLost(failure_text(fault)) from fault
        self._writing = 0
        self._changed.unpark_all()

    async def wait_unsent(self, bytes_max: int) -> None:
        """Wait until no more than this is unsent, or the stream is closed. Needs the task `write`."""
        while self.unsent_bytes > bytes_max and not self.closed:
            await self._changed.park()

    async def wait_closed(self) -> None:
        while not self.closed:
            await self._changed.park()

    async def close(self) -> None:
        self.closed = True
        self._changed.unpark_all()
        await trio.aclose_forcefully(self._stream)


def short_form(packet: Puback | Pubrec) -> bytes:
    """A success of any version. MQTT 5.0, 3.4.2.1"""
    return ((0x4002 if isinstance(packet, Puback) else 0x5002) << 16 | packet.packet_id).to_bytes(4)


def failure_text(fault: BaseException) -> str:
    """The message of a stream error: trio's text and the system's, or the TLS error."""
    cause = fault.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    if isinstance(cause, ssl.SSLError):
        return sentence(cause)
    system = cause.strerror if isinstance(cause, OSError) else None
    return ": ".join(filter(None, (str(fault), system))) or "it broke"
