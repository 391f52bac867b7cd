"""A scripted MQTT client with the state that a good client library keeps, and notes of all that it does and sees."""

from collections.abc import Callable
from typing import Any

from rumq.mqtt import packets as p
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.topics import parse_share
from tests.simulation.history import Connection, Delivery, History, Message, Session, Subscribed
from tests.simulation.network import Stream

EXPIRY_SECONDS = 100_000


class Client:
    """clean: its sessions end with their connections. lazy: it keeps acknowledgements back until `catch_up`."""

    def __init__(
        self, client_id: str, version: int, history: History, tell: Callable[..., None], *, clean: bool, lazy: bool,
        window: int, aliases_max: int = 0, has_few_ids: bool = False,
    ) -> None:  # fmt: skip
        """window: its Receive Maximum, 0: it says none; aliases_max: its Topic Alias Maximum

        has_few_ids: it takes the lowest packet id that is free, so that ids are used again at once"""
        self._has_few_ids = has_few_ids
        self.aliases_max = aliases_max
        self._aliases: dict[int, str] = {}
        self.client_id, self.version, self.clean, self.lazy, self.window = (
            client_id,
            version,
            clean,
            lazy,
            window,
        )
        self.history, self._tell = history, tell
        self.stream: Stream | None = None
        self.connection: Connection | None = None
        self.session: Session | None = None
        self.said_goodbye: tuple[Stream, Connection] | None = None
        self.given_up: list[tuple[Stream, Connection]] = []  # connections that another one was to take over
        # Nobody has answered a CONNECT with clean start: it has nothing left of the session that may still be there.
        self._owes_clean_start = False
        self._packet_id = 0
        self._out: dict[int, tuple[Message, bool]] = {}  # packet id -> message, whether PUBREC came
        self._in: set[int] = set()  # inbound QoS 2 packet ids that wait for PUBREL
        self._asked: dict[int, Subscribed] = {}
        self._kept_back: list[p.Packet] = []

    @property
    def is_up(self) -> bool:
        return self.connection is not None and self.connection.granted is not None

    # What it does

    def connect(self, stream: Stream, number: int, *, clean_start: bool, will: Message | None, delay: float) -> None:
        """Say CONNECT on a new connection; the one that it has, if any, is left to the broker to end."""
        if self.stream is not None and self.connection is not None:
            self._end("taken over")
        self._owes_clean_start = clean_start = clean_start or self._owes_clean_start
        self.stream = stream
        stream.on_data = self._read
        self._frames = FrameReader(version=self.version)
        self.connection = Connection(
            number, self.client_id, clean_start, not self.clean, self.history.step, will, delay
        )
        self.history.connections.append(self.connection)
        if clean_start and self.session is not None and self.session.ending is None:
            self.session.ending = self.history.step
        if clean_start:  # it has nothing of an earlier session any more, whatever becomes of this CONNECT
            self._out.clear()
            self._in.clear()
        self._asked.clear()
        self._kept_back.clear()
        self._aliases.clear()
        properties: dict[str, Any] = {}
        if self.version == 5:
            if not self.clean:
                properties["session_expiry_interval"] = EXPIRY_SECONDS
            if self.window:
                properties["receive_maximum"] = self.window
            if self.aliases_max:
                properties["topic_alias_maximum"] = self.aliases_max
        said = None
        if will is not None:
            named: dict[str, Any] = {"will_delay_interval": int(delay)} if delay else {}
            said = p.Will(will.topic, payload(will), will.qos, will.retain, named)  # type: ignore[arg-type]
        self._say(
            p.Connect(self.client_id, self.version, clean_start, 0, None, None, said, properties)  # type: ignore[arg-type]
        )

    def publish(self, topic: str, qos: int, *, retain: bool) -> None:
        assert self.connection is not None
        message = self.history.message(self.client_id, self.connection.number, topic, qos, retain=retain)
        packet_id = None
        if qos:
            packet_id = self._next_id()
            self._out[packet_id] = (message, False)
        self._say(p.Publish(topic, payload(message), qos, retain, False, packet_id))

    def subscribe(
        self, topic_filter: str, qos: int, *, no_local: bool = False, as_published: bool = False, handling: int = 0
    ) -> None:
        assert self.session is not None
        share = parse_share(topic_filter)
        plain = share[1] if share is not None else topic_filter
        if plain.startswith("$log/"):
            plain = plain.split("/", 2)[2]
        if self.version != 5:
            no_local = as_published = False
            handling = 0
        wish = Subscribed(
            topic_filter, plain, qos, no_local, as_published, handling, self.history.step, share is not None
        )
        self.session.subscriptions.append(wish)
        packet_id = self._next_id()
        self._asked[packet_id] = wish
        one = p.SubscriptionRequest(topic_filter, qos, no_local, as_published, handling)
        self._say(p.Subscribe(packet_id, (one,)))

    def unsubscribe(self, wish: Subscribed) -> None:
        packet_id = self._next_id()
        wish.leaving = self.history.step
        self._asked[packet_id] = wish
        self._say(p.Unsubscribe(packet_id, (wish.topic_filter,)))

    def disconnect(self) -> None:
        self._say(p.Disconnect())
        assert self.stream is not None and self.connection is not None
        self.said_goodbye = (self.stream, self.connection)
        self._end("disconnect")

    def cut(self) -> None:
        """The network fails, or the client dies."""
        self._end("cut")

    def catch_up(self) -> None:
        """Say what was kept back."""
        kept, self._kept_back = self._kept_back, []
        for packet in kept:
            self._say(packet)

    def wishes(self) -> list[Subscribed]:
        """The subscriptions that it has and is not about to end."""
        return [s for s in self.session.subscriptions if s.leaving is None] if self.session is not None else []

    # What it sees

    def _read(self, stream: Stream) -> None:
        data = bytes(stream.here)
        stream.recv(len(data)) if data else None
        if stream is not self.stream:
            return
        self._frames.receive(data)
        for frame in self._frames.frames():
            packet = decode(frame.first_byte, frame.body, self.version)
            self._tell(f"    {self.client_id} <- {packet}")
            self._take(packet)
            if self.stream is not stream:
                return
        if stream.ended:
            self._end("closed")

    def _take(self, packet: p.Packet) -> None:
        kind = type(packet)
        if kind is p.Publish:
            self._message(packet)  # type: ignore[arg-type]
        elif kind is p.Puback or kind is p.Pubrec:
            self._acknowledged(packet)  # type: ignore[arg-type]
        elif kind is p.Pubrel:
            self._in.discard(packet.packet_id)  # type: ignore[union-attr]
            self._acknowledge(p.Pubcomp(packet.packet_id))  # type: ignore[union-attr]
        elif kind is p.Pubcomp:
            self._out.pop(packet.packet_id, None)  # type: ignore[union-attr]
        elif kind is p.Suback:
            self._asked.pop(packet.packet_id).granted = self.history.step  # type: ignore[union-attr]
            if max(packet.reasons) > 2:  # type: ignore[union-attr]
                self.history.faults.append(f"{self.client_id} was refused a subscription: {packet}")
        elif kind is p.Unsuback:
            self._asked.pop(packet.packet_id).gone = self.history.step  # type: ignore[union-attr]
        elif kind is p.Connack:
            self._granted(packet)  # type: ignore[arg-type]
        elif kind is p.Disconnect and packet.reason != 0x8E:  # type: ignore[union-attr]
            self.history.faults.append(f"{self.client_id} was sent away: {packet}")

    def _granted(self, packet: p.Connack) -> None:
        connection = self.connection
        assert connection is not None
        step = self.history.step
        if packet.reason:
            self.history.faults.append(f"{self.client_id} was refused: {packet}")
            return
        connection.granted, connection.present = step, packet.session_present
        self._owes_clean_start = False
        old = self.session
        if packet.session_present:
            if connection.clean or (old is not None and not old.lasting):
                self.history.faults.append(f"{self.client_id} found a session where there is none")
            if old is None:  # it did not hear of its beginning
                self._begin(step, connection)
            for packet_id, (message, released) in self._out.items():
                if released:
                    self._say(p.Pubrel(packet_id))
                else:
                    message.repeats += 1
                    self._say(p.Publish(message.topic, payload(message), message.qos, message.retain, True, packet_id))
            return
        if old is not None and old.lasting and old.ending is None:
            self.history.faults.append(f"{self.client_id}'s session is gone")
        if old is not None and old.ending is None:
            old.ending = step
        self._out.clear()
        self._in.clear()
        self._begin(step, connection)

    def _begin(self, step: int, connection: Connection) -> None:
        self.session = Session(self.client_id, step, connection.lasting, self.window)
        self.history.sessions.append(self.session)

    def _message(self, packet: p.Publish) -> None:
        assert self.session is not None
        topic, alias = packet.topic, packet.properties.get("topic_alias")
        if alias is not None:
            topic = self._aliases[alias] = topic or self._aliases[alias]
        seen = packet.qos == 2 and packet.packet_id in self._in
        if packet.qos == 2:
            self._in.add(packet.packet_id or 0)
            self._acknowledge(p.Pubrec(packet.packet_id or 0))
        elif packet.qos:
            self._acknowledge(p.Puback(packet.packet_id or 0))
        if not seen:
            delivery = Delivery(int(packet.payload), topic, packet.qos, packet.retain, packet.dup, self.history.step)
            self.session.deliveries.append(delivery)
        elif not packet.dup:
            self.history.faults.append(f"{self.client_id}: a packet id in use without DUP: {packet}")

    def _acknowledged(self, packet: p.Puback | p.Pubrec) -> None:
        packet_id = packet.packet_id
        if packet_id not in self._out:
            if type(packet) is p.Pubrec:
                self._say(p.Pubrel(packet_id))
            return
        message, _ = self._out[packet_id]
        if packet.reason >= 0x80:
            self.history.faults.append(f"{self.client_id} may not publish: {packet}")
        if message.acked is None:
            message.acked = self.history.step
        if type(packet) is p.Pubrec:
            self._out[packet_id] = (message, True)
            self._say(p.Pubrel(packet_id))
        else:
            del self._out[packet_id]

    def _acknowledge(self, packet: p.Packet) -> None:
        if self.lazy:
            self._kept_back.append(packet)
        else:
            self._say(packet)

    # Its connection

    def _end(self, how: str) -> None:
        connection, stream = self.connection, self.stream
        assert connection is not None and stream is not None
        connection.over, connection.how = self.history.step, how
        if self.session is not None:
            self.session.torn.append(self.history.step)
            if not self.session.lasting and self.session.ending is None:
                self.session.ending = self.history.step
        self.stream = self.connection = None
        if how == "taken over":
            self.given_up.append((stream, connection))
        else:
            stream.close()

    def _say(self, packet: p.Packet) -> None:
        assert self.stream is not None
        self._tell(f"    {self.client_id} -> {packet}")
        try:
            self.stream.send(encode(packet, self.version))
        except (BrokenPipeError, BlockingIOError):
            pass  # it will hear of that

    def _next_id(self) -> int:
        if self._has_few_ids:
            self._packet_id = 0
        while True:
            self._packet_id = self._packet_id % 65535 + 1
            if self._packet_id not in self._out and self._packet_id not in self._asked:
                return self._packet_id


def payload(message: Message) -> bytes:
    return b"%d" % message.number
