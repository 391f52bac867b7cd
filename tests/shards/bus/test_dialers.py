"""Links within a node: each end of a socket pair in a process of its own, and a ring that both have."""

import os
import socket
from collections.abc import Iterator
from functools import partial

import pytest

from rumq.net.kernels import shared_memory
from rumq.net.sockets.fd_passing import FdPassing, make_shard_sockets
from rumq.shards.bus.dialers import PairDialer
from rumq.shards.bus.shared_ring import SharedRing

RING_BYTES = 1 << 12


class Shards:
    """Shards 0 and 1. attached: (here, shard, socket, ring) of each link"""

    def __init__(self) -> None:
        self.doors = make_shard_sockets(2)
        self.attached: list[tuple[int, int, socket.socket, SharedRing | None]] = []
        self.passings: list[FdPassing] = []
        self.dialers: list[PairDialer] = []
        for index in range(2):
            self.passings.append(FdPassing(self.doors, index, lambda seconds, call: None))
            self.dialers.append(self.begin(index))

    def begin(self, index: int, ring_bytes: int = RING_BYTES) -> PairDialer:
        dialer = PairDialer(self.passings[index], index, ring_bytes)
        dialer.begin(partial(self._attach, index), lambda shard: None)
        return dialer

    def _attach(self, index: int, shard: int, sock: socket.socket, _: bytes, ring: SharedRing | None = None) -> None:
        self.attached.append((index, shard, sock, ring))

    def dial(self, dialer: PairDialer | None = None) -> None:
        (dialer or self.dialers[1]).dial(0)
        self.passings[1].flush()

    def close(self) -> None:
        for *_, sock, _ in self.attached:
            sock.close()
        for end in (end for door in self.doors for end in door):
            end.close()


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shards]:
    monkeypatch.setattr(shared_memory, "IS_ORDERED", True)
    here = Shards()
    yield here
    here.close()


def test_both_ends_of_a_pair_are_attached_where_they_belong(shards: Shards) -> None:
    shards.dial()
    shards.passings[0].hear()
    (near, far) = shards.attached
    assert near[:2] == (1, 0) and far[:2] == (0, 1)
    near[2].send(b"hello")
    assert far[2].recv(9) == b"hello"


def test_both_sides_have_the_same_ring_and_no_descriptor_of_it_stays_open(shards: Shards) -> None:
    before = len(os.listdir("/proc/self/fd"))
    shards.dial()
    shards.passings[0].hear()
    rings = [ring for *_, ring in shards.attached]
    assert rings[0] is not None and rings[1] is not None
    assert rings[0].identity == rings[1].identity
    for way in (rings, rings[::-1]):
        assert way[1].take(way[0].put((b"both ways",), 9), 9) == b"both ways"
    del rings, way
    shards.attached = [(*link, None) for *link, _ in shards.attached]  # type: ignore[misc]
    assert len(os.listdir("/proc/self/fd")) == before + 2  # the sockets


def test_without_a_ring_there_is_a_link(shards: Shards) -> None:
    shards.dial(shards.begin(1, ring_bytes=0))
    shards.passings[0].hear()
    assert [ring for *_, ring in shards.attached] == [None, None] and len(shards.attached) == 2


def test_one_that_could_give_the_ring_alone_leaves_one_that_its_successor_does_not_have(shards: Shards) -> None:
    """It died between two datagrams. The identities differ, which `Hello` says."""
    made = SharedRing.make(RING_BYTES)
    assert made is not None
    shards.passings[1].give(0, "ring", made[1], "1")
    shards.dial(shards.begin(1, ring_bytes=0))
    shards.passings[0].hear()
    assert shards.attached[0][3] is None
    stale = shards.attached[1][3]
    assert stale is not None and stale.identity == made[0].identity
    shards.dial()
    shards.passings[0].hear()
    ours, theirs = shards.attached[2][3], shards.attached[3][3]
    assert ours is not None and theirs is not None and ours.identity == theirs.identity != stale.identity


def test_what_comes_as_a_ring_and_is_none_leaves_a_link_without(shards: Shards) -> None:
    fd, other = os.pipe()
    os.close(other)
    shards.passings[1].give(0, "ring", fd, "1")
    shards.dial(shards.begin(1, ring_bytes=0))
    shards.passings[0].hear()
    assert len(shards.attached) == 2 and shards.attached[1][3] is None
