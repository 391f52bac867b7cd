"""One test client: a plain blocking socket that speaks by `wire`, hears by `replies`, and waits with a deadline.

Does only what a test tells it to: it acknowledges, pings and disconnects on request. Knows no broker."""

import contextlib
import socket
import struct
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from tests.conformance import wire
from tests.conformance.replies import decode, frame_size
from tests.conformance.wire import Kind, Packet, Properties, Text

Address = tuple[str, int]
DEADLINE_S = 60.0  # so that a test ends


class Ended(Exception):
    """The broker closed the connection."""


class Peer:
    silent_refusals = False  # the broker under test does without DISCONNECT where it only should send one

    def __init__(self, address: Address, version: int = 5, deadline_s: float = DEADLINE_S) -> None:
        self.socket = socket.create_connection(address, timeout=deadline_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.version, self.deadline_s = version, deadline_s
        self.connack = Packet(Kind.CONNACK)
        self._buffer = bytearray()
        self._inbox: list[Packet] = []
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def send(self, *packets: bytes) -> None:
        self.socket.sendall(b"".join(packets))

    def close(self) -> None:
        """End without DISCONNECT, as a lost network does."""
        self.socket.close()

    def reset(self) -> None:
        """End with a TCP reset: whatever the broker still sends is refused."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def leave(self, code: int | None = None, properties: Properties | None = None) -> None:
        """DISCONNECT, then wait until the broker has closed its side, so that it has acted on it."""
        self.send(wire.disconnect(code, properties))
        self.rest_until_end()
        self.close()

    # --- reading

    def receive(self, deadline_s: float | None = None) -> Packet:
        """The next packet; raise Ended at the end of the connection, TimeoutError past the deadline."""
        return self._inbox.pop(0) if self._inbox else self._from_socket(deadline_s)

    def maybe_receive(self, deadline_s: float | None = None) -> Packet | None:
        """The next packet, or None at the end of the connection; TimeoutError past the deadline."""
        try:
            return self.receive(deadline_s)
        except Ended:
            return None

    def _from_socket(self, deadline_s: float | None = None) -> Packet:
        until = time.monotonic() + (self.deadline_s if deadline_s is None else deadline_s)
        while True:
            size = frame_size(bytes(self._buffer[:5]))
            if size is not None and len(self._buffer) >= size[1]:
                head, whole = size
                body = bytes(self._buffer[head:whole])
                packet = decode(self._buffer[0], body, self.version)
                packet.size = whole
                del self._buffer[:whole]
                return packet
            self.socket.settimeout(max(until - time.monotonic(), 0.001))
            try:
                data = self.socket.recv(65_536)
            except ConnectionError:
                data = b""
            finally:
                self.socket.settimeout(self.deadline_s)
            if not data:
                raise Ended(f"connection closed, {len(self._buffer)} bytes of a packet left over")
            self._buffer += data

    def expect(self, kind: Kind) -> Packet:
        """The next packet of `kind`; a PUBLISH that comes before it waits for `message`."""
        kept: list[Packet] = []
        while (packet := self._from_socket() if kind != Kind.PUBLISH else self.receive()).kind != kind:
            assert packet.kind == Kind.PUBLISH, f"{kind.name} expected, got {packet}"
            kept.append(packet)
        self._inbox += kept
        return packet

    def message(self, ack: bool = True) -> Packet:
        """The next PUBLISH, acknowledged to its end by its QoS unless told otherwise."""
        packet = self.expect(Kind.PUBLISH)
        if ack:
            self.acknowledge(packet)
        return packet

    def acknowledge(self, packet: Packet) -> None:
        """Answer a PUBLISH to its end by its QoS."""
        if packet.qos == 1:
            self.send(wire.ack(Kind.PUBACK, packet.packet_id))
        elif packet.qos == 2:
            self.send(wire.ack(Kind.PUBREC, packet.packet_id))
            assert self.expect(Kind.PUBREL).packet_id == packet.packet_id
            self.send(wire.ack(Kind.PUBCOMP, packet.packet_id))

    def messages(self, count: int, ack: bool = True) -> list[Packet]:
        return [self.message(ack) for _ in range(count)]

    def payloads(self, count: int) -> list[bytes]:
        return [packet.payload for packet in self.messages(count)]

    def pending(self) -> list[Packet]:
        """Whatever arrives before the answer to a PINGREQ sent now."""
        found, self._inbox = self._inbox, []
        self.send(wire.PINGREQ)
        while (packet := self._from_socket()).kind != Kind.PINGRESP:
            found.append(packet)
        return found

    def expect_silence(self) -> None:
        found = self.pending()
        assert found == [], found

    def rest_until_end(self, deadline_s: float | None = None) -> list[Packet]:
        """Every packet until the broker closes; raise TimeoutError if it does not."""
        found: list[Packet] = []
        with contextlib.suppress(Ended):
            while True:
                found.append(self.receive(deadline_s))
        return found

    def expect_refusal(self, *codes: int, silent: bool = False) -> None:
        """The broker ends the connection: before MQTT 5 without a word, else by a DISCONNECT of `codes`.

        silent: MQTT 5 may also close without a word, as when bytes follow that it will never read."""
        found = [packet for packet in self.rest_until_end() if packet.kind != Kind.PUBLISH]
        if self.version < 5 or ((silent or self.silent_refusals) and not found):
            assert found == []
        else:
            assert [packet.kind for packet in found] == [Kind.DISCONNECT], found
            assert found[0].code in codes, f"{found[0].code:#04x}, expected one of {[hex(c) for c in codes]}"

    def expect_no_connection(self, *codes: int, silent: bool = False) -> None:
        """The broker refuses CONNECT: MQTT 5 by one CONNACK of `codes`; an older client it leaves without a word.

        codes: none where no CONNACK may come; silent: MQTT 5 may also be left without a word"""
        found = self.rest_until_end()
        if self.version < 5 or not codes or ((silent or self.silent_refusals) and not found):
            assert found == []
        else:
            assert [packet.kind for packet in found] == [Kind.CONNACK], found
            assert found[0].code in codes, f"{found[0].code:#04x}, expected one of {[hex(c) for c in codes]}"

    # --- whole exchanges

    def connect(self, client_id: Text = "", **fields: Any) -> Packet:
        """CONNECT with `wire.connect`'s fields; return the CONNACK, whatever its code."""
        self.send(wire.connect(client_id, self.version, **fields))
        self.connack = self.expect(Kind.CONNACK)
        return self.connack

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def subscribe(self, *filters: Text | tuple[Text, int], qos: int = 0, properties: Properties = ()) -> list[int]:
        """SUBSCRIBE to each filter with `qos`, or with its own options byte; return SUBACK's codes."""
        pairs = [one if isinstance(one, tuple) else (one, qos) for one in filters]
        packet_id = self.next_id()
        self.send(wire.subscribe(packet_id, pairs, properties, self.version))
        answer = self.expect(Kind.SUBACK)
        assert answer.packet_id == packet_id
        return answer.codes

    def unsubscribe(self, *filters: Text) -> list[int]:
        packet_id = self.next_id()
        self.send(wire.unsubscribe(packet_id, filters, (), self.version))
        answer = self.expect(Kind.UNSUBACK)
        assert answer.packet_id == packet_id
        return answer.codes

    def publish(self, topic: Text, payload: bytes = b"", qos: int = 0, **fields: Any) -> int | None:
        """PUBLISH and see its handshake through; return the code of PUBACK or PUBREC, None for QoS 0."""
        packet_id = self.next_id() if qos else 0
        self.send(wire.publish(topic, payload, qos, packet_id, version=self.version, **fields))
        if qos == 0:
            return None
        answer = self.expect(Kind.PUBACK if qos == 1 else Kind.PUBREC)
        assert answer.packet_id == packet_id
        if qos == 2 and answer.code < 0x80:
            self.send(wire.ack(Kind.PUBREL, packet_id))
            assert self.expect(Kind.PUBCOMP).packet_id == packet_id
        return answer.code

    def publish_all(self, topic: Text, payloads: Iterable[bytes], qos: int = 0) -> None:
        for payload in payloads:
            self.publish(topic, payload, qos)
