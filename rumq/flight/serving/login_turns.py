"""Bounds concurrent credential checks and delayed refusals, fairly between sources of calls.

A source is an address (of IPv6 its /64), or all handshakes together, for which gRPC gives no address. Each call has a
thread, which waits here."""

from __future__ import annotations

import ipaddress
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from rumq.auth.fair_queue import FairQueue

DELAYED_MAX = 16  # delayed refusals of one user at one source
DELAYED_OF_A_SOURCE_MAX = 48  # refusals of all users at it
DELAYED_TOTAL_MAX = 128  # of all sources; beyond it a source may have DELAYED_GUARANTEED
DELAYED_GUARANTEED = 2
WAITING_MAX = 256  # calls of a source that wait for a turn
HANDSHAKE_SOURCE = ""  # the source of a handshake
T = TypeVar("T")


class TooManyWaiting(Exception):
    """A source has reached its limit of waiting calls."""


class LoginTurns:
    """At most `running_max` at once; each source in turn."""

    def __init__(self, running_max: int) -> None:
        self._lock = threading.Lock()
        self._lanes: FairQueue[threading.Event] = FairQueue(running_max)
        self._waiting: Counter[str] = Counter()
        self._delayed: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def turn(self, source: str, waiting_max: int = WAITING_MAX) -> Iterator[None]:
        """Hold a turn, after waiting for it. raises: TooManyWaiting"""
        ready = threading.Event()
        with self._lock:
            if self._waiting[source] >= waiting_max or not self._lanes.put(source, ready):
                raise TooManyWaiting
            self._waiting[source] += 1
            self._start()
        ready.wait()
        try:
            yield
        finally:
            with self._lock:
                forget_one(self._waiting, source)
                self._lanes.finished()
                self._start()

    def check(self, source: str, user: str) -> None:
        """raises: TooManyWaiting if a user or a source has too many delayed refusals"""
        with self._lock:
            if self._full(source, user):
                raise TooManyWaiting

    @contextmanager
    def delayed_refusal(self, source: str, user: str) -> Iterator[bool]:
        """Hold a delayed refusal; False if there are too many."""
        with self._lock:
            admitted = not self._full(source, user)
            if admitted:
                self._delayed[source, user] += 1
        try:
            yield admitted
        finally:
            if admitted:
                with self._lock:
                    forget_one(self._delayed, (source, user))

    def _full(self, source: str, user: str) -> bool:
        of_source = sum(count for (of, _), count in self._delayed.items() if of == source)
        return (
            self._delayed.get((source, user), 0) >= DELAYED_MAX
            or of_source >= DELAYED_OF_A_SOURCE_MAX
            or (of_source >= DELAYED_GUARANTEED and self._delayed.total() >= DELAYED_TOTAL_MAX)
        )

    def _start(self) -> None:
        while (ready := self._lanes.maybe_next()) is not None:
            ready.set()


def forget_one(counts: Counter[T], key: T) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def source_of(peer: str) -> str:
    """The source of an address without port: for IPv6 its /64, which one customer usually owns."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return peer
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
