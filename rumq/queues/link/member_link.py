"""One MQTT 5 connection of an engine: a session that lasts, one shared subscription, acknowledgements in any order.

`rumq.client` acknowledges what its user has taken, in order; an engine acknowledges what its consumers have, message by
message. MQTT 5.0, 3.3 to 3.4, 4.9. Refuses to know channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import trio

from rumq.client import ConnectionLost, Refused
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.errors import MqttFault
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import (
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Publish,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.queues.kernels.deliveries import cut
from rumq.queues.kernels.push_frames import pubacks
from rumq.queues.link.ports import OpenStream
from rumq.queues.rules.messages import Delivered

VERSION = 5
RECEIVE_BYTES_MAX = 1 << 18
CONNECT_SECONDS_MAX = 5.0
SEND_SECONDS_MAX = 2.0
SERVER_KEEP_ALIVE_PART = 2  # a PINGREQ each half of what the broker asks for
Arrived = tuple[Delivered, int, float]  # message, packet id, seconds until it expires
Answer = TypeVar("Answer", Suback, Unsuback)


class MemberLogin(NamedTuple):
    """A session of the broker's own. expiry_seconds: it outlives its connection so long"""

    client_id: str
    password: bytes
    expiry_seconds: int
    username: str | None = None


class MemberLink:
    """is_resumed: the broker had the session"""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._packets: list[Packet] = []
        self._messages: list[Arrived] = []
        self._topics: dict[bytes, str] = {}
        self._sending = trio.Lock()
        self._keep_alive = 0
        self._takes_messages = False
        self.is_resumed = False

    @classmethod
    async def open(
        cls, open_stream: OpenStream, login: MemberLogin, receive_maximum: int, *, takes_messages: bool = False
    ) -> MemberLink:
        """raises: Refused, ConnectionLost. takes_messages: `receive` gives those of queues as `Delivered`"""
        with trio.move_on_after(CONNECT_SECONDS_MAX):
            try:
                stream = await open_stream()
            except (OSError, trio.BrokenResourceError) as fault:
                raise ConnectionLost(str(fault)) from fault
            link = cls(stream)
            link._takes_messages = takes_messages
            try:
                await link._connect(login, receive_maximum)
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
            return link
        raise ConnectionLost(f"no answer within {CONNECT_SECONDS_MAX:g} s")

    async def _connect(self, login: MemberLogin, receive_maximum: int) -> None:
        properties = Properties(
            receive_maximum=receive_maximum, topic_alias_maximum=0, session_expiry_interval=login.expiry_seconds,
        )  # fmt: skip
        await self._send(
            encode(
                Connect(login.client_id, VERSION, False, 0, login.username, login.password, None, properties), VERSION
            )
        )
        answer = await self._answer()
        if not isinstance(answer, Connack):
            raise ConnectionLost(f"the broker began with {type(answer).__name__}")
        if answer.reason.is_error:
            said = answer.properties.get("reason_string") or answer.reason.text
            raise Refused("the connection", answer.reason, said)
        self.is_resumed = answer.session_present
        self._keep_alive = answer.properties.get("server_keep_alive", 0)

    async def subscribe(self, filters: Sequence[str], *, tells_place: bool) -> None:
        """Subscribe at QoS 1, without retained messages. raises: Refused, ConnectionLost"""
        properties = Properties(user_properties=[("rumq-place", "yes")]) if tells_place else Properties()
        wanted = tuple(SubscriptionRequest(each, 1, retain_handling=2) for each in filters)
        await self._send(encode(Subscribe(1, wanted, properties), VERSION))
        answer = await self._wait_answer(Suback)
        for each, reason in zip(filters, answer.reasons, strict=False):
            if reason.is_error:
                raise Refused(f"SUBSCRIBE to {each}", reason, answer.properties.get("reason_string") or reason.text)

    async def unsubscribe(self, filters: Sequence[str]) -> None:
        """raises: ConnectionLost"""
        await self._send(encode(Unsubscribe(1, tuple(filters)), VERSION))
        await self._wait_answer(Unsuback)

    async def _wait_answer(self, kind: type[Answer]) -> Answer:
        """What came before it is received later."""
        early: list[Packet] = []
        while not isinstance(answer := await self._answer(), kind):
            if isinstance(answer, Disconnect):
                raise said_by(answer)
            early.append(answer)
        self._packets = early + self._packets
        return answer

    async def _answer(self) -> Packet:
        while not self._packets:
            await self._fill()
        return self._packets.pop(0)

    async def receive(self) -> tuple[list[Arrived], list[Publish]]:
        """Messages with their places, and other PUBLISH packets, at least one of both.

        raises: ConnectionLost, Refused where the broker says why it ends"""
        while True:
            if not self._packets and not self._messages:
                await self._fill()
            packets, self._packets = self._packets, []
            messages, self._messages = self._messages, []
            for each in packets:
                if isinstance(each, Disconnect):
                    raise said_by(each)
            others = [each for each in packets if isinstance(each, Publish)]
            if messages or others:
                return messages, others

    async def _fill(self) -> None:
        try:
            data = await self._stream.receive_some(RECEIVE_BYTES_MAX)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
            raise ConnectionLost(str(fault)) from fault
        if not data:
            raise ConnectionLost("the broker closed it")
        self._buffer += data
        try:
            taken = self._cut(bytes(self._buffer))
        except MqttFault as fault:
            raise ConnectionLost(f"the broker broke the protocol: {fault}") from fault
        del self._buffer[:taken]

    def _cut(self, data: bytes) -> int:
        """Whole packets; returns how many bytes they have. raises: MqttFault"""
        at = 0
        while True:
            if self._takes_messages:
                at = cut(data, at, self._topics, self._messages)
            found = frame_at(data, at, len(data), version=VERSION)
            if found is None or at + found[0] + found[1] > len(data):
                return at
            stop = at + found[0] + found[1]
            self._packets.append(decode(data[at], data[at + found[0] : stop], VERSION))
            at = stop

    async def acknowledge(self, packet_ids: list[int]) -> None:
        """PUBACK of these. raises: ConnectionLost"""
        await self._send(pubacks(packet_ids))

    async def _send(self, data: bytes) -> None:
        if not data:
            return
        # Whole, or the connection is of no use: what is acknowledged must not be lost because its consumer leaves.
        with trio.move_on_after(SEND_SECONDS_MAX) as scope:
            scope.shield = True
            async with self._sending:
                try:
                    await self._stream.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
                    raise ConnectionLost(str(fault)) from fault
        if scope.cancelled_caught:
            raise ConnectionLost(f"the broker has read nothing for {SEND_SECONDS_MAX:g} s")

    async def keep_alive(self) -> None:
        """As often as the broker asks for; until cancelled. raises: ConnectionLost"""
        if not self._keep_alive:
            await trio.sleep_forever()
        while True:
            await trio.sleep(self._keep_alive / SERVER_KEEP_ALIVE_PART)
            await self._send(encode(Pingreq(), VERSION))

    async def leave(self, *, ends_session: bool) -> None:
        """Say goodbye. ends_session: what was not acknowledged goes to others at once"""
        properties = Properties(session_expiry_interval=0) if ends_session else Properties()
        with trio.move_on_after(1.0) as scope:
            scope.shield = True
            try:
                await self._send(encode(Disconnect(Reason.SUCCESS, properties), VERSION))
            except ConnectionLost:
                pass
        await self.close()

    async def close(self) -> None:
        await trio.aclose_forcefully(self._stream)


def said_by(packet: Disconnect) -> Refused:
    return Refused("to go on", packet.reason, packet.properties.get("reason_string") or packet.reason.text)
