"""A register beside the harms: one client writes a rising number as a retained message, another reads what is retained.

What was acknowledged before a read began must not be missing in it: a lower number that had been acknowledged is a
*stale read*. A lower number that was never acknowledged may still have been on its way, and is only counted. Knows no
fault, and nothing of nodes but their addresses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.conformance.peer import Address, Ended, Peer
from tests.conformance.wire import Kind, Packet

if TYPE_CHECKING:
    from tests.cluster.live.workload import Doors

WRITE_EVERY_S = 0.05
READ_EVERY_S = 0.1
ANSWER_S = 3.0  # without an answer for so long, a client tries another node
LOST = (Ended, AssertionError, ConnectionError, TimeoutError, OSError)


class History:
    """What became of the numbers of one register. Both sides call it, each from its thread.

    reads: those that were answered with a number; late: with one that nobody had acknowledged, below one that was"""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.faults: list[str] = []
        self.reads = self.late = 0
        self._acknowledged: set[int] = set()
        self.newest = 0  # the highest that was acknowledged
        self._lock = threading.Lock()

    def acknowledge(self, number: int) -> None:
        with self._lock:
            self._acknowledged.add(number)
            self.newest = max(self.newest, number)

    def read(self, number: int, newest: int, where: str) -> None:
        """newest: `History.newest`, from before the SUBSCRIBE was sent"""
        with self._lock:
            self.reads += 1
            if number >= newest:
                return
            if number in self._acknowledged:
                self.faults.append(f"stale read of {self.topic} at {where}: {number}, {newest} was acknowledged before")
            else:
                self.late += 1


class Register:
    """writer and reader, a thread each, at any node that answers"""

    def __init__(self, number: int, doors: Doors) -> None:
        self.history = History(f"r/{number}")
        self._name, self._doors = f"register-{number}", doors
        self._at = number % len(doors.addresses)
        self._next = 1
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=call, daemon=True) for call in (self._write_on, self._read_on)]

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._stopping.set()
        for each in self._threads:
            if each.ident is not None:
                each.join(2 * ANSWER_S)

    def _write_on(self) -> None:
        node = self._at
        while not self._stopping.is_set():
            with suppress(*LOST):
                self._write_at(self._doors.addresses[node])
            node = self._doors.other_than(node)
            self._stopping.wait(READ_EVERY_S)

    def _write_at(self, address: Address) -> None:
        with Peer(address, deadline_s=ANSWER_S) as peer:
            if peer.connect(f"{self._name}-writer").code:
                return
            while not self._stopping.wait(WRITE_EVERY_S):
                number, self._next = self._next, self._next + 1  # never again, whatever is answered
                code = peer.publish(self.history.topic, b"%d" % number, qos=1, retain=True)
                if code is not None and code < 0x80:
                    self.history.acknowledge(number)

    def _read_on(self) -> None:
        node = self._at
        while not self._stopping.wait(READ_EVERY_S):
            node = (node + 1) % len(self._doors.addresses)
            with suppress(*LOST):
                self._read_at(node)

    def _read_at(self, node: int) -> None:
        with Peer(self._doors.addresses[node], deadline_s=ANSWER_S) as peer:
            if peer.connect(f"{self._name}-reader").code:
                return
            newest = self.history.newest
            peer.subscribe(self.history.topic, qos=0)
            number = first_retained(peer.maybe_receive)
            if number is not None:
                self.history.read(number, newest, f"node {node + 1}, {time.strftime('%H:%M:%S')}")


def first_retained(receive: Callable[[float], Packet | None]) -> int | None:
    """The retained message, behind live ones if need be; None if it does not come in time."""
    until = time.monotonic() + ANSWER_S
    while (left := until - time.monotonic()) > 0:
        packet = receive(left)
        if packet is None:
            return None
        if packet.kind == Kind.PUBLISH and packet.retain:
            return int(packet.payload)
    return None
