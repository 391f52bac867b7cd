"""One MQTT 5 connection that only publishes, batches of QoS 1: PUBLISH out, PUBACK in, in order.

As many are unacknowledged as the broker's receive maximum allows; the others wait here, in the order in which they were
put. What is not answered when the connection ends may have been published or not. MQTT 5.0, 3.3, 3.4, 4.9."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import trio

from rumq.client import ClientError, ConnectionLost, Outgoing, Refused
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import PACKET_BYTES_MAX, FrameReader
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.packets import Connack, Connect, Disconnect, Packet, Pingreq, Puback
from rumq.mqtt.properties import Properties, encode_properties
from rumq.mqtt.reasons import Reason
from rumq.mqtt.wire import write_variable_integer
from rumq.queues.link.ports import OpenStream

VERSION = 5
QOS_1, RETAIN = 0x32, 0x01
PUBACK_FIRST_BYTE, SHORT_BYTES = 0x40, 4
IDS = 65_535
RECEIVE_BYTES_MAX = 1 << 18
WRITE_BYTES = 1 << 16
CONNECT_SECONDS_MAX = 5.0


class PushFrame(NamedTuple):
    """A PUBLISH before and behind its packet identifier. topic: as in `Outgoing`"""

    topic: str
    head: bytes
    tail: bytes


class PushBatch:
    """Messages put together. refused: by number; fault: of those that were not answered

    acknowledged: called with each number, in the order of sending"""

    __slots__ = ("acknowledged", "done", "fault", "frames", "left", "refused")

    def __init__(
        self, frames: Sequence[PushFrame], acknowledged: Callable[[PushBatch, int], None] | None = None
    ) -> None:
        self.frames, self.acknowledged = frames, acknowledged
        self.left = len(frames)
        self.refused: dict[int, tuple[Reason, str]] = {}
        self.fault: ClientError | None = None
        self.done = trio.Event()
        if not frames:
            self.done.set()

    def answered(self, number: int, reason: Reason, why: str) -> None:
        if not reason.is_error:
            self.accepted(number)
            return
        self.refused[number] = reason, why
        self.left -= 1
        if not self.left:
            self.done.set()

    def accepted(self, number: int) -> None:
        self.left -= 1
        if self.acknowledged is not None:
            self.acknowledged(self, number)
        if not self.left:
            self.done.set()

    def failed(self, fault: ClientError) -> None:
        self.fault = fault
        self.done.set()


class PushLink:
    """client_id: unique, for the log records it with each message; packet_bytes_max: that the broker takes"""

    def __init__(self, client_id: str, username: str | None, password: bytes) -> None:
        self.client_id = client_id
        self._connect = Connect(client_id, VERSION, True, 0, username, password)
        self.packet_bytes_max = PACKET_BYTES_MAX
        self._receive_maximum = IDS
        self._keep_alive = 0
        self._waiting: deque[tuple[PushBatch, int]] = deque()  # batch, its next number
        self._sent: deque[tuple[int, PushBatch, int]] = deque()  # packet id, batch, number in it
        self._packet_id = 0
        self._wake = trio.Event()
        self.ready = trio.Event()
        self.failure: ClientError | None = None

    def put(self, batch: PushBatch) -> None:
        if self.failure is not None:
            batch.failed(self.failure)
        elif batch.left:
            self._waiting.append((batch, 0))
            self._wake.set()

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._sent

    async def run(self, open_stream: OpenStream) -> None:
        """Until it fails or is cancelled; `ready` once the broker has accepted it, or not (`failure`)."""
        stream: trio.abc.Stream | None = None
        try:
            frames = FrameReader(version=VERSION)
            with trio.fail_after(CONNECT_SECONDS_MAX):
                stream = await open_stream()
                rest = await self._begin(stream, frames)
            self.ready.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write, stream)
                self._take(rest)
                await self._read(stream, frames)
        except* (ClientError, OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError) as faults:
            self.failure = first_of(faults)
        finally:
            self._fail()
            self.ready.set()
            if stream is not None:
                await trio.aclose_forcefully(stream)

    async def _begin(self, stream: trio.abc.Stream, frames: FrameReader) -> list[Packet]:
        """The packets that came with CONNACK. raises: ClientError"""
        await stream.send_all(encode(self._connect, VERSION))
        packets: list[Packet] = []
        while not packets:
            packets = cut(await received_bytes(stream), frames)
        answer = packets[0]
        if not isinstance(answer, Connack):
            raise ConnectionLost(f"the broker began with {type(answer).__name__}")
        properties = answer.properties
        if answer.reason.is_error:
            raise Refused("the connection", answer.reason, properties.get("reason_string") or answer.reason.text)
        self.packet_bytes_max = properties.get("maximum_packet_size", PACKET_BYTES_MAX)
        self._receive_maximum = properties.get("receive_maximum", IDS)
        self._keep_alive = properties.get("server_keep_alive", 0)
        return packets[1:]

    async def _write(self, stream: trio.abc.Stream) -> None:
        while True:
            self._wake = trio.Event()
            out = bytearray()
            while self._waiting and len(self._sent) < self._receive_maximum:
                batch, number = self._waiting[0]
                frame = batch.frames[number]
                self._packet_id = self._packet_id % IDS + 1
                out += frame.head
                out += self._packet_id.to_bytes(2, "big")
                out += frame.tail
                self._sent.append((self._packet_id, batch, number))
                if number + 1 == len(batch.frames):
                    self._waiting.popleft()
                else:
                    self._waiting[0] = batch, number + 1
                if len(out) >= WRITE_BYTES:
                    break
            if out:
                await stream.send_all(out)
                continue
            with trio.move_on_after(self._keep_alive / 2 or float("inf")) as idle:
                await self._wake.wait()
            if idle.cancelled_caught:
                await stream.send_all(encode(Pingreq(), VERSION))

    async def _read(self, stream: trio.abc.Stream, frames: FrameReader) -> None:
        while True:
            data = await received_bytes(stream)
            if not frames.buffered_bytes:
                data = data[self._take_short(data) :]
            if data:
                self._take(cut(data, frames))
            self._wake.set()

    def _take_short(self, data: bytes) -> int:
        """PUBACKs without a reason, which nearly all are; returns how many bytes they have. raises: ClientError"""
        at, end, sent = 0, len(data) - SHORT_BYTES, self._sent
        while at <= end and data[at] == PUBACK_FIRST_BYTE and data[at + 1] == 2:
            packet_id = data[at + 2] << 8 | data[at + 3]
            if not sent or sent[0][0] != packet_id:
                raise ConnectionLost(f"PUBACK {packet_id} is not the next one")
            _, batch, number = sent.popleft()
            batch.accepted(number)
            at += SHORT_BYTES
        return at

    def _take(self, packets: list[Packet]) -> None:
        """raises: ClientError"""
        for packet in packets:
            if isinstance(packet, Puback):
                if not self._sent or self._sent[0][0] != packet.packet_id:
                    raise ConnectionLost(f"PUBACK {packet.packet_id} is not the next one")
                _, batch, number = self._sent.popleft()
                batch.answered(number, packet.reason, packet.properties.get("reason_string", ""))
            elif isinstance(packet, Disconnect):
                said = packet.properties.get("reason_string") or packet.reason.text
                raise Refused("to go on", packet.reason, said)

    def _fail(self) -> None:
        self.failure = self.failure or ConnectionLost("the connection was closed")
        left = dict.fromkeys([batch for _, batch, _ in self._sent] + [batch for batch, _ in self._waiting])
        self._sent.clear()
        self._waiting.clear()
        for batch in left:
            batch.failed(self.failure)


async def received_bytes(stream: trio.abc.Stream) -> bytes:
    """raises: ConnectionLost, and trio's"""
    data = await stream.receive_some(RECEIVE_BYTES_MAX)
    if not data:
        raise ConnectionLost("the broker closed it")
    return bytes(data)


def cut(data: bytes, frames: FrameReader) -> list[Packet]:
    """Whole packets. raises: ConnectionLost"""
    frames.receive(data)
    try:
        return [decode(first, body, VERSION) for first, body in frames.frames()]
    except MqttFault as fault:
        raise ConnectionLost(f"the broker broke the protocol: {fault}") from fault


class FrameBuilder:
    """PUBLISH packets of QoS 1; messages of one batch often have equal properties, which are encoded once."""

    def __init__(self) -> None:
        self._topics: dict[str, bytes] = {}
        self._properties: tuple[Properties | None, bytes] = (None, b"")

    def frame(self, message: Outgoing) -> PushFrame:
        topic = self._topics.get(message.topic)
        if topic is None:
            name = message.topic.encode()
            topic = self._topics[message.topic] = len(name).to_bytes(2, "big") + name
        if self._properties[0] != message.properties:
            self._properties = message.properties, encode_properties(message.properties, PacketType.PUBLISH)
        tail = self._properties[1] + message.payload
        first = QOS_1 | RETAIN if message.retain else QOS_1
        head = bytes((first,)) + write_variable_integer(len(topic) + 2 + len(tail)) + topic
        return PushFrame(message.topic, head, tail)


def first_of(group: BaseExceptionGroup[BaseException]) -> ClientError:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            return first_of(each)
        if isinstance(each, ClientError):
            return each
    return ConnectionLost(str(group.exceptions[0]) or type(group.exceptions[0]).__name__)
