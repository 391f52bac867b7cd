"""Clients that are correct across crashes: they keep their state as MQTT asks of them, and come back. MQTT 5.0, 4.4.

Each runs in a thread of its own, from the broker's start to its death. Knows no kill."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.broker_process import Address
from tests.conformance import wire
from tests.conformance.peer import Ended, Peer
from tests.conformance.wire import Kind, Packet, Prop
from tests.faults.kill.ledger import Entry, Ledger

LASTING = [(Prop.SESSION_EXPIRY, 86_400), (Prop.RECEIVE_MAXIMUM, 50)]
WINDOW = 20
LIFE_MESSAGES_MAX = 120
FINAL = b""  # the payload of the last message of each topic
RETAIN_EVERY = 10


class Publisher:
    """Publishes numbers, odd ones with QoS 1 and even ones with QoS 2, `WINDOW` at a time."""

    def __init__(self, name: str, topic: str, ledger: Ledger, payload_bytes: int = 0) -> None:
        """payload_bytes: at least; what a number does not fill is blank"""
        self.name, self.topic, self.ledger, self.payload_bytes = name, topic, ledger, payload_bytes
        self.next = 0
        # packet id -> (entry, waits for PUBCOMP), in the order of sending
        self.in_flight: dict[int, tuple[Entry, bool]] = {}
        self._last_id = 0

    def run(self, address: Address, go_on: Callable[[], bool]) -> None:
        stop = self.next + LIFE_MESSAGES_MAX
        with Peer(address) as peer:
            connack = peer.connect(self.name, clean=False, properties=LASTING)
            if not connack.session_present and self.in_flight:
                self.ledger.faults.append(f"the session of {self.name} is gone")
            for packet_id, (entry, released) in self.in_flight.items():
                if released:
                    peer.send(wire.ack(Kind.PUBREL, packet_id))
                else:
                    self._send(peer, entry, packet_id, dup=True)
            while True:
                while len(self.in_flight) < WINDOW and self.next < stop and go_on():
                    self._publish(peer)
                if not self.in_flight:
                    return
                self._take(peer, peer.receive())

    def _publish(self, peer: Peer) -> None:
        while (packet_id := self._last_id % 60_000 + 1) in self.in_flight:
            self._last_id += 1
        self._last_id += 1
        entry = Entry(self.name, self.next)
        self.next += 1
        self.in_flight[packet_id] = entry, False
        self._send(peer, entry, packet_id, dup=False)

    def _send(self, peer: Peer, entry: Entry, packet_id: int, *, dup: bool) -> None:
        qos = 1 + entry.number % 2
        self.ledger.publishes(entry, qos)
        retain = entry.number % RETAIN_EVERY == 0
        payload = entry.payload.ljust(self.payload_bytes)
        peer.send(wire.publish(self.topic, payload, qos, packet_id, dup=dup, retain=retain))

    def _take(self, peer: Peer, packet: Packet) -> None:
        packet_id = packet.packet_id
        entry, _ = self.in_flight[packet_id]
        if packet.kind == Kind.PUBREC:
            self.ledger.acknowledges(entry)
            self.in_flight[packet_id] = entry, True
            peer.send(wire.ack(Kind.PUBREL, packet_id))
        elif packet.kind == Kind.PUBACK:
            self.ledger.acknowledges(entry)
            del self.in_flight[packet_id]
        else:
            assert packet.kind == Kind.PUBCOMP, packet
            del self.in_flight[packet_id]


class Subscriber:
    """A persistent session that acknowledges as it should; `lazy` ones keep some unacknowledged for a while."""

    def __init__(self, name: str, qos: int, ledger: Ledger, lazy: int, topics: int) -> None:
        self.name, self.qos, self.ledger, self.lazy = name, qos, ledger, lazy
        self._ended: set[str] = set()  # topics whose last message has come, of so many
        self._topics = topics
        self.released: set[int] = set()  # QoS 2 packet ids that were received and not released yet
        self.done = threading.Event()
        self._owed: list[bytes] = []

    def subscribe(self, address: Address) -> None:
        """Before anything is published: from SUBACK on everything is owed to it."""
        with Peer(address) as peer:
            peer.connect(self.name, clean=False, properties=LASTING)
            assert peer.subscribe("t/#", qos=self.qos) == [self.qos]

    def run(self, address: Address) -> None:
        self._owed.clear()
        with Peer(address) as peer:
            connack = peer.connect(self.name, clean=False, properties=LASTING)
            if not connack.session_present:
                self.ledger.faults.append(f"the session of {self.name} is gone")
                return
            while not self.done.is_set():
                self._take(peer, peer.receive())

    def _take(self, peer: Peer, packet: Packet) -> None:
        packet_id = packet.packet_id
        if packet.kind == Kind.PUBREL:
            self.released.discard(packet_id)
            peer.send(wire.ack(Kind.PUBCOMP, packet_id))
            return
        assert packet.kind == Kind.PUBLISH, packet
        if packet.payload == FINAL:
            self._ended.add(packet.topic)
            if len(self._ended) == self._topics:
                self.done.set()
        elif packet.qos == 2:
            if packet_id in self.released:
                return self._answer(peer, wire.ack(Kind.PUBREC, packet_id))
            self.released.add(packet_id)
            self.ledger.receives(self.name, packet.payload, packet.dup)
        else:
            self.ledger.receives(self.name, packet.payload, packet.dup)
        self._answer(peer, wire.ack(Kind.PUBREC if packet.qos == 2 else Kind.PUBACK, packet_id))

    def _answer(self, peer: Peer, answer: bytes) -> None:
        self._owed.append(answer)
        if len(self._owed) > self.lazy or self.done.is_set():
            peer.send(*self._owed)
            self._owed.clear()


class Running:
    """Clients in threads, for one life of a broker."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self._faults: list[BaseException] = []

    def start(self, call: Callable[..., None], *args: object) -> None:
        def guarded() -> None:
            try:
                call(*args)
            except (Ended, ConnectionError):
                pass  # the broker is dead
            except BaseException as fault:  # told by `join`, in the test's own thread
                self._faults.append(fault)

        self._threads.append(threading.Thread(target=guarded, daemon=True))
        self._threads[-1].start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a client hangs"
        if self._faults:
            raise self._faults[0]
