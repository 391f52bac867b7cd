"""The client's connection: opens a packet stream, serves it until it is lost, and reconnects if asked to.

Owns the state of the QoS handshakes, which outlives a stream.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import trio

from rumq.client.session.back_off import BackOff
from rumq.client.session.inbound import Inbound
from rumq.client.session.options import TEMPORARY, ConnectOptions, connect_packet, reconnect_policy
from rumq.client.session.outbound import PACKET_ID_MAX, Outbound
from rumq.client.session.packet_stream import OpenStream, PacketStream, failure_text
from rumq.client.session.redirects import OpenAt, Redirects
from rumq.client.session.subscriptions import Subscriptions
from rumq.errors import ClientError, ConnectionLost, Refused
from rumq.mqtt.errors import MqttFault, ProtocolViolation
from rumq.mqtt.packets import (
    Auth,
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
    Unsuback,
)
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason

INBOX_BYTES_MAX = 16 * 2**20  # reading pauses above this, and TCP's flow control slows the broker


class OutboxPort(Protocol):
    """What is published by way of a file has packet ids of its own, from `first_id` on."""

    first_id: int

    def connected(self, stream: PacketStream, connack: Connack) -> int:
        """A connection has begun; returns what is left of the broker's receive maximum."""

    def lost(self) -> None: ...

    def ended(self, failure: ClientError) -> None:
        """There will be no further connection."""

    def receive(self, packet: Packet) -> None:
        """An answer with an id from `first_id` on."""


class BrokerConnection:
    """One connection over successive packet streams. `changed` wakes every task that waits for a state change;
    cancelling `scope` ends it without DISCONNECT."""

    def __init__(
        self,
        open_stream: OpenStream,
        options: ConnectOptions,
        open_at: OpenAt | None = None,
        outbox: OutboxPort | None = None,
    ) -> None:
        self._options, self._outbox = options, outbox
        self._redirects = Redirects(open_stream, open_at, options.redirects_max)
        self.client_id = options.client_id
        packet_id_max = PACKET_ID_MAX if outbox is None else outbox.first_id - 1
        self.outbound = Outbound(packet_id_max, options.topic_aliases if options.version == 5 else 0)
        self.inbound = Inbound(options.topic_alias_maximum, manual=options.manual_acknowledge)
        self.subscriptions = Subscriptions()
        self.changed = trio.lowlevel.ParkingLot()
        self.stream: PacketStream | None = None
        self.connack = Connack()
        self.failure: ClientError | None = None  # final: no further stream is opened
        self.publishers = 0  # tasks that wait for an answer: reading must not pause
        self.auths: list[Auth] | None = None  # of the broker, while we authenticate again
        self.leaving = False
        self.scope = trio.CancelScope()  # of `run`

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep connected until cancelled or a final failure. raises: the error of the first stream, if it fails"""
        failure: ClientError = ConnectionLost("this side has closed it")
        with self.scope:
            failure = await self._run(task_status)
        self.failure = failure
        if self._outbox is not None:
            self._outbox.ended(failure)
        self.changed.unpark_all()

    async def _run(self, task_status: trio.TaskStatus[None]) -> ClientError:
        """Returns the final failure."""
        policy = reconnect_policy(self._options)
        back_off = BackOff(policy) if policy is not None else None
        if self._options.begin_offline and back_off is not None:
            task_status.started()
            try:
                stream = await self._open_at_last(back_off)
            except ClientError as error:
                return error
        else:
            stream = await self._open(clean_start=self._options.clean_start)
            task_status.started()
        while True:
            begun = trio.current_time()
            lost = await self._serve(stream)
            self.stream = None
            if self._outbox is not None:
                self._outbox.lost()
            if self.leaving or back_off is None or not is_temporary(lost):
                return lost
            back_off.connected_for(trio.current_time() - begun)
            try:
                stream = await self._reopen(back_off, lost)
            except ClientError as error:
                return error

    async def _open_at_last(self, back_off: BackOff) -> PacketStream:
        """The first stream, however long the broker is away."""
        try:
            return await self._open(clean_start=self._options.clean_start)
        except ClientError as error:
            if not is_temporary(error):
                raise
            return await self._reopen(back_off, error, clean_start=self._options.clean_start)

    async def _reopen(self, back_off: BackOff, lost: ClientError, *, clean_start: bool = False) -> PacketStream:
        """Reconnect with exponential back-off; raises Refused for a permanent refusal, else the last error."""
        while (pause := back_off.maybe_pause()) is not None:
            await trio.sleep(pause)
            try:
                return await self._open(clean_start=clean_start)
            except ClientError as error:
                if not is_temporary(error):
                    raise
                lost = error
        raise lost

    async def _open(self, *, clean_start: bool) -> PacketStream:
        """Open a stream and wait for CONNACK, at another server where one is named; raises ConnectionLost, Refused."""
        while True:
            stream = await self._open_one(clean_start=clean_start)
            if stream is not None:
                return stream

    async def _open_one(self, *, clean_start: bool) -> PacketStream | None:
        """None: the broker named another server, where to try next."""
        seconds = self._options.connect_seconds_max
        with trio.move_on_after(seconds):
            try:
                transport = await self._redirects.take()()
            except OSError as fault:
                raise ConnectionLost(failure_text(fault)) from fault
            stream = PacketStream(transport, self._options.version)
            try:
                is_accepted = await self._handshake(stream, clean_start)
            except BaseException:
                await stream.close()
                raise
            if not is_accepted:
                await stream.close()
                return None
            return stream
        raise ConnectionLost(f"no answer within {seconds:g} s")

    async def _handshake(self, stream: PacketStream, clean_start: bool) -> bool:
        """CONNECT to CONNACK; False: another server is named. raises: ConnectionLost, Refused, LoginFailed"""
        stream.send(connect_packet(self._options, self.client_id, clean_start=clean_start))
        await stream.flush()
        try:
            first, *rest = await stream.receive()
            while isinstance(first, Auth):
                await self._answer_challenge(stream, first)
                first, *rest = await stream.receive()
        except MqttFault as fault:
            raise ConnectionLost(f"the broker's answer is no MQTT: {fault}") from fault
        if not isinstance(first, Connack):
            raise ConnectionLost(f"the broker began with {packet_name(first)}")
        if first.reason.is_error:
            if self._redirects.follow(first.reason, first.properties):
                return False
            said = first.properties.get("reason_string") or first.reason.text
            raise Refused("the connection", first.reason, said)
        if self._options.login is not None:
            self._options.login.finish(first.properties.get("authentication_data", b""))
        self._begin(stream, first)
        stream.unread(rest)
        self.stream = stream
        self.changed.unpark_all()
        return True

    async def _answer_challenge(self, stream: PacketStream, auth: Auth) -> None:
        """MQTT 5.0, 4.12. raises: ProtocolViolation, LoginFailed"""
        login = self._options.login
        if login is None or auth.reason != Reason.CONTINUE_AUTHENTICATION:
            raise ProtocolViolation("an AUTH that answers nothing")
        data = await trio.to_thread.run_sync(login.answer, auth.properties.get("authentication_data", b""))
        properties = Properties(authentication_method=login.method, authentication_data=data)
        stream.send(Auth(Reason.CONTINUE_AUTHENTICATION, properties))
        await stream.flush()

    def _begin(self, stream: PacketStream, connack: Connack) -> None:
        """Take over what CONNACK says, and send again what was not answered on the last stream."""
        properties = connack.properties
        self.connack = connack
        self._redirects.connected()
        self.client_id = properties.get("assigned_client_identifier", self.client_id)
        stream.packet_bytes_max = properties.get("maximum_packet_size", stream.packet_bytes_max)
        self.outbound.receive_maximum = properties.get("receive_maximum", 65_535)
        self.outbound.aliases.connected(properties.get("topic_alias_maximum", 0))
        self.inbound.connected(session_present=connack.session_present)
        for packet in self.outbound.resume(session_present=connack.session_present):
            stream.send(packet)
        if not connack.session_present:
            # The broker has no session of ours: the same filters, from now on.
            for build in self.subscriptions.packets():
                stream.send(self.outbound.request(build, lambda *_: None))
        if self._outbox is not None:
            self.outbound.receive_maximum = self._outbox.connected(stream, connack)

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
            case Puback() | Pubrec() | Pubcomp() if self._outbox and packet.packet_id >= self._outbox.first_id:
                self._outbox.receive(packet)
            case Puback() | Pubrec() | Pubcomp() | Suback() | Unsuback():
                answer = self.outbound.receive(packet)
            case Pingresp():
                pass
            case Disconnect():
                said = packet.properties.get("reason_string") or packet.reason.text
                if self._options.reconnect and self._redirects.follow(packet.reason, packet.properties):
                    raise ConnectionLost(f"the broker named another server: {said}")
                raise Refused("to go on", packet.reason, said)
            case Auth() if self.auths is not None:
                self.auths.append(packet)
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
    return isinstance(error, ConnectionLost) or (isinstance(error, Refused) and error.reason_code in TEMPORARY)


def packet_name(packet: Packet) -> str:
    return type(packet).__name__.upper()
