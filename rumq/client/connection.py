"""The client's connection: opens a packet stream, serves it until it is lost, and reconnects if asked to.

Owns the state of the QoS handshakes, which outlives a stream.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from rumq.client.inbound import Inbound
from rumq.client.options import TEMPORARY, ConnectOptions
from rumq.client.outbound import Outbound
from rumq.client.packet_stream import OpenStream, PacketStream, failure_text
from rumq.errors import ClientError, ConnectionLost, Refused
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.packets import (
    Connack,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
)
from rumq.mqtt.reasons import Reason

BACK_OFF_SECONDS, BACK_OFF_SECONDS_MAX = 0.1, 2.0
INBOX_BYTES_MAX = 16 * 2**20  # reading pauses above this, and TCP's flow control slows the broker


class BrokerConnection:
    """One connection over successive packet streams. `changed` wakes every task that waits for a state change."""

    def __init__(self, open_stream: OpenStream, options: ConnectOptions) -> None:
        self._open_stream, self._options = open_stream, options
        self.client_id = options.client_id
        self.outbound = Outbound()
        self.inbound = Inbound(options.topic_alias_maximum)
        self.subscriptions: dict[str, SubscriptionRequest] = {}
        self.changed = trio.lowlevel.ParkingLot()
        self.stream: PacketStream | None = None
        self.connack = Connack()
        self.failure: ClientError | None = None  # final: no further stream is opened
        self.publishers = 0  # tasks that wait for an answer: reading must not pause
        self.leaving = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep connected until cancelled or a final failure. raises: the error of the first stream, if it fails"""
        stream = await self._open(clean_start=self._options.clean_start)
        task_status.started()
        while True:
            lost = await self._serve(stream)
            self.stream = None
            if self.leaving or not self._options.reconnect or not is_temporary(lost):
                break
            try:
                stream = await self._reopen()
            except ClientError as error:
                lost = error
                break
        self.failure = lost
        self.changed.unpark_all()

    async def _reopen(self) -> PacketStream:
        """Reconnect with exponential backoff; raises Refused for a permanent refusal."""
        delay = BACK_OFF_SECONDS
        while True:
            await trio.sleep(delay)
            try:
                return await self._open(clean_start=False)
            except ClientError as error:
                if not is_temporary(error):
                    raise
            delay = min(2 * delay, BACK_OFF_SECONDS_MAX)

    async def _open(self, *, clean_start: bool) -> PacketStream:
        """Open a stream and wait for CONNACK; raises ConnectionLost, or Refused."""
        seconds = self._options.connect_seconds_max
        with trio.move_on_after(seconds):
            try:
                transport = await self._open_stream()
            except OSError as fault:
                raise ConnectionLost(failure_text(fault)) from fault
            stream = PacketStream(transport, self._options.version)
            try:
                await self._handshake(stream, clean_start)
            except BaseException:
                await stream.close()
                raise
            return stream
        raise ConnectionLost(f"no answer within {seconds:g} s")

    async def _handshake(self, stream: PacketStream, clean_start: bool) -> None:
        stream.send(self._options.connect_packet(self.client_id, clean_start=clean_start))
        await stream.flush()
        try:
            connack, *rest = await stream.receive()
        except MqttFault as fault:
            raise ConnectionLost(f"the broker's answer is no MQTT: {fault}") from fault
        if not isinstance(connack, Connack):
            raise ConnectionLost(f"the broker began with {packet_name(connack)}")
        properties = connack.properties
        if connack.reason.is_error:
            said = properties.get("reason_string") or connack.reason.text
            raise Refused("the connection", connack.reason, said)
        self.connack = connack
        self.client_id = properties.get("assigned_client_identifier", self.client_id)
        stream.packet_bytes_max = properties.get("maximum_packet_size", stream.packet_bytes_max)
        self.outbound.receive_maximum = properties.get("receive_maximum", 65_535)
        self.inbound.connected(session_present=connack.session_present)
        for packet in self.outbound.resume(session_present=connack.session_present):
            stream.send(packet)
        if not connack.session_present and self.subscriptions:
            self._resubscribe(stream)
        stream.unread(rest)
        self.stream = stream
        self.changed.unpark_all()

    def _resubscribe(self, stream: PacketStream) -> None:
        """Subscribe to the same filters without replay: the broker has no session of ours."""
        filters = tuple(self.subscriptions.values())
        stream.send(self.outbound.request(lambda packet_id: Subscribe(packet_id, filters), lambda *_: None))

    async def _serve(self, stream: PacketStream) -> ClientError:
        """Serve one stream until it is lost; returns the error."""
        lost: list[ClientError] = []

        async def until_lost(part: Callable[[], Awaitable[None]]) -> None:
            try:
                await part()
            except ClientError as error:
                lost.append(error)
            nursery.cancel_scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(until_lost, stream.write)
                nursery.start_soon(until_lost, partial(self._keep_alive, stream))
                await until_lost(partial(self._read, stream))
        finally:
            await stream.close()
        return lost[0]

    async def _read(self, stream: PacketStream) -> None:
        while True:
            try:
                for packet in await stream.receive():
                    self._dispatch(stream, packet)
            except MqttFault as fault:
                await self._disconnect(stream, fault.reason)
                raise ConnectionLost(f"the broker broke the protocol: {fault}") from fault
            self.changed.unpark_all()
            while self._paused:
                await self.changed.park()
                stream.received_at = trio.current_time()

    @property
    def _paused(self) -> bool:
        return self.inbound.bytes_waiting > INBOX_BYTES_MAX and not self.publishers

    def _dispatch(self, stream: PacketStream, packet: Packet) -> None:
        answer: Packet | None = None
        match packet:
            case Publish():
                answer = self.inbound.receive(packet)
            case Pubrel():
                answer = self.inbound.receive_pubrel(packet)
            case Puback() | Pubrec() | Pubcomp() | Suback() | Unsuback():
                answer = self.outbound.receive(packet)
            case Pingresp():
                pass
            case Disconnect():
                said = packet.properties.get("reason_string") or packet.reason.text
                raise Refused("to go on", packet.reason, said)
            case _:
                raise ProtocolViolation(f"a broker does not send {packet_name(packet)}")
        if answer is not None:
            stream.send(answer)

    async def _keep_alive(self, stream: PacketStream) -> None:
        """PINGREQ twice per interval; 1.5 intervals of silence end the stream. MQTT 5.0, 3.1.2.10."""
        seconds = self.connack.properties.get("server_keep_alive", self._options.keep_alive)
        if not seconds:
            await trio.sleep_forever()
        while True:
            await trio.sleep(seconds / 2)
            silence = trio.current_time() - stream.received_at
            if silence >= 1.5 * seconds and not self._paused:
                raise ConnectionLost(f"the broker sent nothing for {silence:.0f} s")
            stream.send(Pingreq())

    async def _disconnect(self, stream: PacketStream, reason: Reason) -> None:
        """Send DISCONNECT with the reason (MQTT 5), without waiting for a slow socket."""
        if self._options.version == 5:
            stream.send(Disconnect(reason))
            with trio.move_on_after(0.1):
                await stream.wait_unsent(0)


def is_temporary(error: ClientError) -> bool:
    """Whether a retry may succeed."""
    return not isinstance(error, Refused) or error.reason_code in TEMPORARY


def packet_name(packet: Packet) -> str:
    return type(packet).__name__.upper()
