"""Who may have a secret checked now, and how many refusals may wait: fair to each place that calls come from.

A place is an address (of IPv6 its /64), or a handshake, of which gRPC does not say where it comes from. Calls have
threads: here they wait. Knows no gRPC, no secret and no clock."""

from __future__ import annotations

import ipaddress
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from rumq.auth.fair_queue import FairQueue

HELD_MAX = 16  # refusals of one user at one place that wait at once
HELD_OF_A_PLACE_MAX = 48  # refusals of all users at it
HELD_TOGETHER_MAX = 128  # of all places; beyond it a place may hold HELD_LEAST
HELD_LEAST = 2
WAITING_MAX = 256  # calls of a place that wait for their turn
ANYWHERE = ""  # the place of a handshake
T = TypeVar("T")


class TooMany(Exception):
    """A place has as many calls here as it may have."""


class LoginTurns:
    """At most `running_max` at once; each place in turn."""

    def __init__(self, running_max: int) -> None:
        self._lock = threading.Lock()
        self._lanes: FairQueue[threading.Event] = FairQueue(running_max)
        self._waiting: Counter[str] = Counter()
        self._held: Counter[tuple[str, str]] = Counter()

    @contextmanager
    def turn(self, place: str, waiting_max: int = WAITING_MAX) -> Iterator[None]:
        """Wait for a turn, and have it. raises: TooMany"""
        ready = threading.Event()
        with self._lock:
            if self._waiting[place] >= waiting_max or not self._lanes.put(place, ready):
                raise TooMany
            self._waiting[place] += 1
            self._start()
        ready.wait()
        try:
            yield
        finally:
            with self._lock:
                forget_one(self._waiting, place)
                self._lanes.finished()
                self._start()

    def check(self, place: str, user: str) -> None:
        """raises: TooMany where the refusals of a user, or of a place, wait already"""
        with self._lock:
            if self._full(place, user):
                raise TooMany

    @contextmanager
    def holding(self, place: str, user: str) -> Iterator[bool]:
        """A refusal waits meanwhile; False: it may not, there are too many."""
        with self._lock:
            held = not self._full(place, user)
            if held:
                self._held[place, user] += 1
        try:
            yield held
        finally:
            if held:
                with self._lock:
                    forget_one(self._held, (place, user))

    def _full(self, place: str, user: str) -> bool:
        of_place = sum(count for (where, _), count in self._held.items() if where == place)
        return (
            self._held.get((place, user), 0) >= HELD_MAX
            or of_place >= HELD_OF_A_PLACE_MAX
            or (of_place >= HELD_LEAST and self._held.total() >= HELD_TOGETHER_MAX)
        )

    def _start(self) -> None:
        while (ready := self._lanes.maybe_next()) is not None:
            ready.set()


def forget_one(counts: Counter[T], key: T) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def place_of(peer: str) -> str:
    """The place of an address without port: who has an IPv6 network has all of its /64."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv4Address):
        return peer
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address) >> 64 << 64, 64)))
