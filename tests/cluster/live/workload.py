"""Clients of a cluster that are correct across failures: they note what they do, and come back by another node.

A publisher notes each message before it is sent and each acknowledgement when it has come, with its time. A subscriber
has a persistent session. Knows no fault."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence

from tests.cluster.live.register import Register
from tests.conformance import wire
from tests.conformance.peer import Address, Ended, Peer
from tests.conformance.wire import Kind, Packet
from tests.faults.kill.ledger import Entry, Ledger
from tests.faults.kill.traffic import FINAL, LASTING, WINDOW
from tests.faults.kill.traffic import Publisher as ClosedLoopPublisher
from tests.faults.kill.traffic import Subscriber as AttachedSubscriber

INTERVAL_S = 0.02  # between two messages of a publisher: what a gap is measured by
SILENCE_S = 3.0  # without an answer for so long, a client tries another node
BACKOFF_S = 0.02
LOST = (Ended, ConnectionError, TimeoutError, OSError)


class Doors:
    """Where clients connect. A client begins at a node of its own, and goes to any other when that does not answer."""

    def __init__(self, addresses: Sequence[Address], seed: int) -> None:
        self.addresses = list(addresses)
        self._random = random.Random(seed)

    def other_than(self, number: int) -> int:
        others = [n for n in range(len(self.addresses)) if n != number]
        return self._random.choice(others or [number])


class Client:
    """The loop that both kinds of clients share. home, node: numbers of the node it prefers, and is at"""

    def __init__(self, doors: Doors, home: int) -> None:
        self._doors, self.home, self.node = doors, home, home
        self.goes_home = threading.Event()
        self.was_accepted = False  # the last connection got a CONNACK
        self.stopping = threading.Event()

    def run(self, serve: Callable[[Address], None]) -> None:
        """Serve at one node after another, until `stopping`."""
        while not self.stopping.is_set():
            if self.goes_home.is_set():
                self.goes_home.clear()
                self.node = self.home
            self.was_accepted = False
            try:
                serve(self._doors.addresses[self.node])
            except LOST as fault:
                # As most clients do: the same address once more after a connection that ended, another one otherwise.
                if isinstance(fault, TimeoutError) or not self.was_accepted:
                    self.node = self._doors.other_than(self.node)
                self.stopping.wait(BACKOFF_S)


class Publisher(ClosedLoopPublisher):
    """Numbers, odd ones with QoS 1 and even ones with QoS 2, one every `INTERVAL_S`.

    acked_at: times (monotonic) of acknowledgements; refused: numbers that were answered with an error"""

    def __init__(self, name: str, topic: str, ledger: Ledger, doors: Doors, home: int) -> None:
        super().__init__(name, topic, ledger)
        self.client = Client(doors, home)
        self.acked_at: list[float] = []
        self.refused: list[Entry] = []
        self.ends = threading.Event()  # nothing new; it stops when all is answered

    def run_until_drained(self) -> None:
        self.client.run(self._serve)

    def _serve(self, address: Address) -> None:
        with Peer(address, deadline_s=SILENCE_S) as peer:
            connack = peer.connect(self.name, clean=False, properties=LASTING)
            if connack.code:
                raise Ended(f"CONNACK {connack.code:#04x}")
            self.client.was_accepted = True
            if not connack.session_present and self.in_flight:
                self.ledger.faults.append(f"the session of {self.name} is gone")
            for packet_id, (entry, released) in list(self.in_flight.items()):
                if released:
                    peer.send(wire.ack(Kind.PUBREL, packet_id))
                else:
                    self._send(peer, entry, packet_id, dup=True)
            heard = due = time.monotonic()
            while not self.client.goes_home.is_set():
                if self.ends.is_set() and not self.in_flight:
                    self.client.stopping.set()
                    return
                now = time.monotonic()
                if now >= due and len(self.in_flight) < WINDOW and not self.ends.is_set():
                    self._publish(peer)
                    due = max(due + INTERVAL_S, now)
                if self.in_flight and now - heard > SILENCE_S:
                    raise TimeoutError
                try:
                    packet = peer.receive(max(0.001, due - now) if not self.ends.is_set() else INTERVAL_S)
                except TimeoutError:
                    heard = heard if self.in_flight else now
                    continue
                heard = time.monotonic()
                self._take(peer, packet)

    def _take(self, peer: Peer, packet: Packet) -> None:
        if packet.kind == Kind.DISCONNECT:
            raise Ended(f"DISCONNECT {packet.code:#04x}")
        if packet.kind in (Kind.PUBACK, Kind.PUBREC) and packet.code >= 0x80:
            self.refused.append(self.in_flight.pop(packet.packet_id)[0])
            return
        super()._take(peer, packet)
        if packet.kind in (Kind.PUBACK, Kind.PUBREC):
            self.acked_at.append(time.monotonic())


class Subscriber(AttachedSubscriber):
    """A persistent session on everything, until it has the last message of each topic."""

    def __init__(self, name: str, qos: int, ledger: Ledger, lazy: int, topics: int, doors: Doors, home: int) -> None:
        super().__init__(name, qos, ledger, lazy, topics)
        self.client = Client(doors, home)

    def run_until_done(self) -> None:
        self.client.run(self._serve)

    def _serve(self, address: Address) -> None:
        self._owed.clear()
        with Peer(address, deadline_s=SILENCE_S) as peer:
            connack = peer.connect(self.name, clean=False, properties=LASTING)
            if connack.code:
                raise Ended(f"CONNACK {connack.code:#04x}")
            self.client.was_accepted = True
            if not connack.session_present:
                self.ledger.faults.append(f"the session of {self.name} is gone")
                self.client.stopping.set()
                return
            while not self.done.is_set() and not self.client.goes_home.is_set():
                packet = peer.receive()
                if packet.kind == Kind.DISCONNECT:
                    raise Ended(f"DISCONNECT {packet.code:#04x}")
                self._take(peer, packet)
            if self.done.is_set():
                self.client.stopping.set()


class Workload:
    """Publishers of a topic each, subscribers of all of them, and registers, in threads. A client's home and its
    topic's partition are independent hashes, so that both are led by the same node for some and not for others."""

    def __init__(self, doors: Doors, publishers: int, subscribers: int, ledger: Ledger) -> None:
        nodes = len(doors.addresses)
        self.ledger, self.doors = ledger, doors
        self.publishers = [Publisher(f"p{n}", f"t/{n}", ledger, doors, n % nodes) for n in range(publishers)]
        self.subscribers = [
            Subscriber(f"s{n}", 1 + n % 2, ledger, [0, 3][n % 2], publishers, doors, n % nodes)
            for n in range(subscribers)
        ]
        self.registers = [Register(n, doors) for n in range(nodes)]
        self._threads: list[threading.Thread] = []
        self._crashes: list[BaseException] = []

    def start(self) -> None:
        for each in self.subscribers:
            each.subscribe(self.doors.addresses[each.client.home])
        for call in [each.run_until_done for each in self.subscribers] + [
            each.run_until_drained for each in self.publishers
        ]:
            self._threads.append(threading.Thread(target=self._guarded, args=(call,), daemon=True))
            self._threads[-1].start()
        for register in self.registers:
            register.start()

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as fault:  # told by `problems`, in the run's own thread
            self._crashes.append(fault)

    def go_home(self) -> None:
        """Everybody connects again, each to its own node."""
        for each in [*self.publishers, *self.subscribers]:
            each.client.goes_home.set()

    def wait_for_acks(self, seconds: float) -> list[str]:
        """Until each publisher has had an acknowledgement since now; returns the names of those that have not."""
        since, until = time.monotonic(), time.monotonic() + seconds
        while True:
            late = [p.name for p in self.publishers if not p.acked_at or p.acked_at[-1] < since]
            if not late or time.monotonic() > until or self._crashes:
                return late
            time.sleep(0.01)

    def drain(self, seconds: float) -> list[str]:
        """Publishers end when everything is answered. Returns what went wrong."""
        for each in self.publishers:
            each.ends.set()
        for register in self.registers:
            register.stop()
        return self._of_registers() + self._joined(self._threads[len(self.subscribers) :], seconds, "publisher")

    def _of_registers(self) -> list[str]:
        """Stale reads, and registers that were never read: their checks would mean nothing."""
        unread = [each.history.topic for each in self.registers if not each.history.reads]
        return [fault for each in self.registers for fault in each.history.faults] + [
            f"nobody could read {topic}" for topic in unread
        ]

    def finish(self, seconds: float) -> list[str]:
        """Say the last message of each topic, and wait until each subscriber has them. Returns what went wrong."""
        with Peer(self.doors.addresses[0], deadline_s=seconds) as peer:
            peer.connect("finish")
            for each in self.publishers:
                peer.publish(each.topic, FINAL, qos=2)
        return self._joined(self._threads[: len(self.subscribers)], seconds, "subscriber")

    def end(self) -> None:
        for each in [*self.publishers, *self.subscribers]:
            each.client.stopping.set()
            each.client.goes_home.set()
        for register in self.registers:
            register.stop()

    def _joined(self, threads: Sequence[threading.Thread], seconds: float, who: str) -> list[str]:
        until = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0.01, until - time.monotonic()))
        stuck = sum(thread.is_alive() for thread in threads)
        problems = [f"{stuck} {who}s are not done after {seconds:g} s"] if stuck else []
        return problems + [f"a client crashed: {crash!r}" for crash in self._crashes]
