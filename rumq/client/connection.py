"""Keeps a client connected: opens a link, serves it until it is lost, and opens the next one if so wished.

Owns both halves of the handshakes, which outlive a link. Refuses to know what its user wants to say.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from rumq.client.inbound import Inbound
from rumq.client.packet_stream import Link, OpenStream, why
from rumq.client.options import TEMPORARY, Options
from rumq.client.outbound import Outbound
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
    Subscription,
    Unsuback,
)
from rumq.mqtt.reasons import Reason

BACK_OFF_SECONDS, BACK_OFF_SECONDS_MAX = 0.1, 2.0
INBOX_BYTES_MAX = 16 * 2**20  # more, and the socket is not read: TCP tells the broker


class Keeper:
    """The connection as it goes on over several links. `changed` wakes whoever waits for anything here."""

    def __init__(self, open_stream: OpenStream, options: Options) -> None:
        self._open_stream, self._options = open_stream, options
        self.client_id = options.client_id
        self.outbound = Outbound()
        self.inbound = Inbound(options.topic_alias_maximum)
        self.subscriptions: dict[str, Subscription] = {}
        self.changed = trio.lowlevel.ParkingLot()
        self.link: Link | None = None
        self.connack = Connack()
        self.end: ClientError | None = None  # why there will be no further link
        self.publishers = 0  # who waits for an answer, so that reading must go on
        self.leaving = False

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep connected until cancelled, or until `end`. If the first link fails, its error is raised."""
        link = await self._open(clean_start=self._options.clean_start)
        task_status.started()
        while True:
            lost = await self._serve(link)
            self.link = None
            if self.leaving or not self._options.reconnect or not is_temporary(lost):
                break
            try:
                link = await self._open_again()
            except ClientError as error:
                lost = error
                break
        self.end = lost
        self.changed.unpark_all()

    async def _open_again(self) -> Link:
        """Try until the broker takes us, longer apart each time; raises Refused for a lasting no."""
        delay = BACK_OFF_SECONDS
        while True:
            await trio.sleep(delay)
            try:
                return await self._open(clean_start=False)
            except ClientError as error:
                if not is_temporary(error):
                    raise
            delay = min(2 * delay, BACK_OFF_SECONDS_MAX)

    async def _open(self, *, clean_start: bool) -> Link:
        """A link after its CONNACK; raises ConnectionLost, or Refused."""
        seconds = self._options.connect_seconds_max
        with trio.move_on_after(seconds):
            try:
                stream = await self._open_stream()
            except OSError as fault:
                raise ConnectionLost(why(fault)) from fault
            link = Link(stream, self._options.version)
            try:
                await self._shake_hands(link, clean_start)
            except BaseException:
                await link.close()
                raise
            return link
        raise ConnectionLost(f"no answer within {seconds:g} s")

    async def _shake_hands(self, link: Link, clean_start: bool) -> None:
        link.send(self._options.connect_packet(self.client_id, clean_start=clean_start))
        await link.flush()
        try:
            connack, *rest = await link.receive()
        except MqttFault as fault:
            raise ConnectionLost(f"the broker's answer is no MQTT: {fault}") from fault
        if not isinstance(connack, Connack):
            raise ConnectionLost(f"the broker began with {name_of(connack)}")
        properties = connack.properties
        if connack.reason.is_error:
            said = properties.get("reason_string") or connack.reason.text
            raise Refused("the connection", connack.reason, said)
        self.connack = connack
        self.client_id = properties.get("assigned_client_identifier", self.client_id)
        link.packet_bytes_max = properties.get("maximum_packet_size", link.packet_bytes_max)
        self.outbound.receive_maximum = properties.get("receive_maximum", 65_535)
        self.inbound.connected(session_present=connack.session_present)
        for packet in self.outbound.resume(session_present=connack.session_present):
            link.send(packet)
        if not connack.session_present and self.subscriptions:
            self._subscribe_again(link)
        link.unread(rest)
        self.link = link
        self.changed.unpark_all()

    def _subscribe_again(self, link: Link) -> None:
        """The broker forgot our session: ask for the same filters, from now on."""
        filters = tuple(self.subscriptions.values())
        link.send(self.outbound.ask(lambda packet_id: Subscribe(packet_id, filters), lambda *_: None))

    async def _serve(self, link: Link) -> ClientError:
        """Serve one link until it is lost; returns why."""
        lost: list[ClientError] = []

        async def until_lost(part: Callable[[], Awaitable[None]]) -> None:
            try:
                await part()
            except ClientError as error:
                lost.append(error)
            nursery.cancel_scope.cancel()

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(until_lost, link.write)
                nursery.start_soon(until_lost, partial(self._keep_alive, link))
                await until_lost(partial(self._read, link))
        finally:
            await link.close()
        return lost[0]

    async def _read(self, link: Link) -> None:
        while True:
            try:
                for packet in await link.receive():
                    self._take(link, packet)
            except MqttFault as fault:
                await self._hang_up(link, fault.reason)
                raise ConnectionLost(f"the broker broke the protocol: {fault}") from fault
            self.changed.unpark_all()
            while self._paused:
                await self.changed.park()
                link.received_at = trio.current_time()

    @property
    def _paused(self) -> bool:
        return self.inbound.bytes_waiting > INBOX_BYTES_MAX and not self.publishers

    def _take(self, link: Link, packet: Packet) -> None:
        answer: Packet | None = None
        match packet:
            case Publish():
                answer = self.inbound.receive(packet)
            case Pubrel():
                answer = self.inbound.release(packet)
            case Puback() | Pubrec() | Pubcomp() | Suback() | Unsuback():
                answer = self.outbound.receive(packet)
            case Pingresp():
                pass
            case Disconnect():
                said = packet.properties.get("reason_string") or packet.reason.text
                raise Refused("to go on", packet.reason, said)
            case _:
                raise ProtocolViolation(f"a broker does not send {name_of(packet)}")
        if answer is not None:
            link.send(answer)

    async def _keep_alive(self, link: Link) -> None:
        """Ask twice an interval, so that silence for one and a half means the end. MQTT 5.0, 3.1.2.10."""
        seconds = self.connack.properties.get("server_keep_alive", self._options.keep_alive)
        if not seconds:
            await trio.sleep_forever()
        while True:
            await trio.sleep(seconds / 2)
            silence = trio.current_time() - link.received_at
            if silence >= 1.5 * seconds and not self._paused:
                raise ConnectionLost(f"the broker said nothing for {silence:.0f} s")
            link.send(Pingreq())

    async def _hang_up(self, link: Link, reason: Reason) -> None:
        """Tell an MQTT 5 broker what it did, as far as the socket takes it at once."""
        if self._options.version == 5:
            link.send(Disconnect(reason))
            with trio.move_on_after(0.1):
                await link.wait_unsent(0)


def is_temporary(error: ClientError) -> bool:
    """Whether another try may succeed."""
    return not isinstance(error, Refused) or error.reason_code in TEMPORARY


def name_of(packet: Packet) -> str:
    return type(packet).__name__.upper()
