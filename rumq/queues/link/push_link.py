"""One MQTT 5 connection that only publishes, batches of QoS 1: PUBLISH out, PUBACK in, in order.

As many are unacknowledged as the broker's receive maximum allows; the others wait here, queues by turns. What is not
answered when the connection ends may have been published or not. MQTT 5.0, 3.3, 3.4, 4.9."""

from __future__ import annotations

from collections import deque

import trio

from rumq.client import ClientError, ConnectionLost, Outgoing, Refused
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import PACKET_BYTES_MAX, FrameReader
from rumq.mqtt.packet_types import PacketType
from rumq.mqtt.packets import Connack, Connect, Disconnect, Packet, Pingreq, Puback
from rumq.mqtt.properties import Properties, encode_properties
from rumq.queues.kernels.push_frames import PushFrames, short_pubacks
from rumq.queues.link.ports import OpenStream
from rumq.queues.link.push_batches import PushBatch, SentPiece, WaitingBatches

VERSION = 5
QOS_1, RETAIN = 0x32, 0x01
SHORT_BYTES = 4  # of a PUBACK without a reason
IDS = 65_535
RECEIVE_BYTES_MAX = 1 << 18
WRITE_BYTES = 1 << 16
IN_FLIGHT_MAX = 8192  # messages: what is sent later waits for as many, whatever queue it is of
CONNECT_SECONDS_MAX = 5.0


class PushLink:
    """client_id: unique, for the log records it with each message; packet_bytes_max: that the broker takes"""

    def __init__(self, client_id: str, username: str | None, password: bytes) -> None:
        self.client_id = client_id
        self._connect = Connect(client_id, VERSION, True, 0, username, password)
        self.packet_bytes_max = PACKET_BYTES_MAX
        self._receive_maximum = IN_FLIGHT_MAX
        self._keep_alive = 0
        self._waiting = WaitingBatches()
        self._sent: deque[SentPiece] = deque()
        self._in_flight = 0
        self._next_id = self._next_answer = 1  # packet ids
        self._wake = trio.Event()
        self.ready = trio.Event()
        self.failure: ClientError | None = None

    def put(self, batch: PushBatch) -> None:
        if self.failure is not None:
            batch.failed(self.failure)
        elif batch.left:
            self._waiting.put(batch)
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
        self._receive_maximum = min(IN_FLIGHT_MAX, properties.get("receive_maximum", IDS))
        self._keep_alive = properties.get("server_keep_alive", 0)
        return packets[1:]

    async def _write(self, stream: trio.abc.Stream) -> None:
        while True:
            self._wake = trio.Event()
            out = bytearray()
            while self._waiting and self._in_flight < self._receive_maximum and len(out) < WRITE_BYTES:
                out += self._number_some()
            if out:
                await stream.send_all(out)
                continue
            with trio.move_on_after(self._keep_alive / 2 or float("inf")) as idle:
                await self._wake.wait()
            if idle.cancelled_caught:
                await stream.send_all(encode(Pingreq(), VERSION))

    def _number_some(self) -> bytearray:
        """What is sent next, with packet ids."""
        piece = self._waiting.next_piece(self._receive_maximum - self._in_flight)
        batch, first, stop = piece
        found = batch.frames.numbered(first, stop, self._next_id)
        self._next_id = id_after(self._next_id, stop - first)
        self._in_flight += stop - first
        self._sent.append(piece)
        return found

    async def _read(self, stream: trio.abc.Stream, frames: FrameReader) -> None:
        while True:
            data = await received_bytes(stream)
            if not frames.buffered_bytes:
                data = data[self._take_short(data) :]
            if data:
                self._take(cut(data, frames))
            self._wake.set()

    def _take_short(self, data: bytes) -> int:
        """PUBACKs without a reason, which nearly all are; returns how many bytes they have."""
        count = short_pubacks(data, 0, self._next_answer, self._in_flight)
        left = count
        while left:
            batch, first, stop = self._sent[0]
            reached = min(stop, first + left)
            self._step(reached)
            batch.accepted(first, reached)
            left -= reached - first
        return count * SHORT_BYTES

    def _step(self, reached: int) -> None:
        """Of the oldest that are not answered, those below `reached` are."""
        batch, first, stop = self._sent[0]
        if reached == stop:
            self._sent.popleft()
        else:
            self._sent[0] = SentPiece(batch, reached, stop)
        self._next_answer = id_after(self._next_answer, reached - first)
        self._in_flight -= reached - first

    def _take(self, packets: list[Packet]) -> None:
        """raises: ClientError"""
        for packet in packets:
            if isinstance(packet, Puback):
                if not self._sent or self._next_answer != packet.packet_id:
                    raise ConnectionLost(f"PUBACK {packet.packet_id} is not the next one")
                batch, first, _ = self._sent[0]
                self._step(first + 1)
                batch.answered(first, packet.reason, packet.properties.get("reason_string", ""))
            elif isinstance(packet, Disconnect):
                said = packet.properties.get("reason_string") or packet.reason.text
                raise Refused("to go on", packet.reason, said)

    def _fail(self) -> None:
        self.failure = self.failure or ConnectionLost("the connection was closed")
        left = dict.fromkeys([each.batch for each in self._sent] + list(self._waiting))
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
    """Adds messages to frames one by one; those of one batch often have equal properties, which are encoded once."""

    def __init__(self, frames: PushFrames) -> None:
        self._frames = frames
        self._topics: dict[str, bytes] = {}
        self._properties: tuple[Properties | None, bytes] = (None, b"")

    def add(self, message: Outgoing) -> None:
        topic = self._topics.get(message.topic)
        if topic is None:
            topic = self._topics[message.topic] = encoded_topic(message.topic)
        if self._properties[0] != message.properties:
            self._properties = message.properties, encode_properties(message.properties, PacketType.PUBLISH)
        first = QOS_1 | RETAIN if message.retain else QOS_1
        self._frames.add(first, topic, self._properties[1], bytes(message.payload))


def encoded_topic(topic: str) -> bytes:
    """With its length."""
    name = topic.encode()
    return len(name).to_bytes(2, "big") + name


def id_after(packet_id: int, count: int) -> int:
    """The packet id so many later."""
    return (packet_id - 1 + count) % IDS + 1


def first_of(group: BaseExceptionGroup[BaseException]) -> ClientError:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            return first_of(each)
        if isinstance(each, ClientError):
            return each
    return ConnectionLost(str(group.exceptions[0]) or type(group.exceptions[0]).__name__)
