"""Descriptors passed between shards: connections to the home shard of their client, and links of the bus.

Each shard has a datagram socket that the supervisor holds open too: messages to a shard that has just died wait for its
successor. One datagram carries many connections. Knows no packet."""

from __future__ import annotations

import array
import errno
import os
import select
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

DATAGRAM_BYTES_MAX = 1 << 16
DESCRIPTORS_MAX = 200  # of one message the kernel takes 253
RETRY_SECONDS = 0.001
STREAM_BYTES = 4 << 20  # of a stream's socket buffer; the kernel gives net.core.wmem_max at most
ANCILLARY_BYTES = socket.CMSG_SPACE(4 * DESCRIPTORS_MAX)


class ShardSocket(NamedTuple):
    """inside: where a shard hears; outside: where everybody speaks to it."""

    inside: socket.socket
    outside: socket.socket


def make_shard_sockets(count: int) -> list[ShardSocket]:
    doors = [ShardSocket(*socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)) for _ in range(count)]
    for door in doors:
        door.inside.setblocking(False)
        door.outside.setblocking(False)
    return doors


class HandedSocket(msgspec.Struct, frozen=True, array_like=True):
    """A descriptor with what was read from it already, or (`rest`) more of that. kind: "client", "bus", ...

    token: of the sender, by which the rest finds its beginning; missing: how many bytes are still to come
    listener: the number of the one that a client came in through"""

    kind: str
    sender: int
    token: int
    peer: str
    data: bytes
    missing: int
    rest: bool = False
    listener: int = 0


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[HandedSocket])
Taken = Callable[[socket.socket, str, bytes, int], None]
DescriptorTaken = Callable[[int, str], None]
Later = Callable[[float, Callable[[], None]], None]


class FdPassing:
    """One shard's door, and the way to the others'."""

    def __init__(
        self,
        doors: list[ShardSocket],
        index: int,
        later: Later,
        failed: Callable[[str], None] | None = None,
    ) -> None:
        """failed: told when a taker raises; None: it raises"""
        self._doors, self._index, self._later, self._failed = doors, index, later, failed
        self._waiting: list[list[tuple[HandedSocket, int | None]]] = [[] for _ in doors]
        self._begun: dict[tuple[int, int], tuple[socket.socket, str, bytearray, int, int]] = {}
        self._token = 0
        self._retrying = False
        self.takers: dict[str, Taken] = {}
        self.descriptor_takers: dict[str, DescriptorTaken] = {}  # of kinds that are no sockets

    @property
    def fd(self) -> int:
        return self._doors[self._index].inside.fileno()

    @staticmethod
    def pair() -> tuple[socket.socket, socket.socket]:
        """Both ends of a stream, one of them to be given to another shard."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        for end in (ours, theirs):
            # With the default each end waits for the other in the middle of a turn's messages.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STREAM_BYTES)
        return ours, theirs

    # Giving

    def give(self, shard: int, kind: str, fd: int, peer: str = "", data: bytes = b"", listener: int = 0) -> None:
        """Hand a descriptor over; it is ours no more. It leaves with `flush`."""
        self._token += 1
        first, rest = data[: DATAGRAM_BYTES_MAX // 2], data[DATAGRAM_BYTES_MAX // 2 :]
        waiting = self._waiting[shard]
        waiting.append((HandedSocket(kind, self._index, self._token, peer, first, len(rest), False, listener), fd))
        for at in range(0, len(rest), DATAGRAM_BYTES_MAX // 2):
            part = rest[at : at + DATAGRAM_BYTES_MAX // 2]
            waiting.append((HandedSocket(kind, self._index, self._token, "", part, 0, True), None))

    def flush(self) -> None:
        """At the end of a turn: send what is to be handed over, as far as the doors take it."""
        for shard, waiting in enumerate(self._waiting):
            while waiting:
                if not self._send(shard, waiting):
                    self._retry()
                    break

    def flush_within(self, seconds_max: float) -> None:
        """For a process without a loop: wait for doors that are full; what they do not take then is closed."""
        until = time.monotonic() + seconds_max
        self.flush()
        while full := [self._doors[shard].outside for shard, waiting in enumerate(self._waiting) if waiting]:
            left = until - time.monotonic()
            if left <= 0:
                break
            select.select([], full, [], left)
            self.flush()
        for waiting in self._waiting:
            for _, fd in waiting:
                if fd is not None:
                    os.close(fd)
            waiting.clear()

    def _send(self, shard: int, waiting: list[tuple[HandedSocket, int | None]]) -> bool:
        count = size = 0
        for item, _ in waiting:
            size += len(item.data) + len(item.peer) + 64
            if count and (size > DATAGRAM_BYTES_MAX or count >= DESCRIPTORS_MAX):
                break
            count += 1
        fds = [fd for _, fd in waiting[:count] if fd is not None]
        body = _encoder.encode([item for item, _ in waiting[:count]])
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self._doors[shard].outside.sendmsg([body], ancillary)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as fault:
            if fault.errno not in (errno.ENOBUFS, errno.ETOOMANYREFS):  # as good as full
                raise
            return False
        for fd in fds:
            os.close(fd)
        del waiting[:count]
        return True

    def _retry(self) -> None:
        if not self._retrying:
            self._retrying = True
            self._later(RETRY_SECONDS, self._again)

    def _again(self) -> None:
        self._retrying = False
        self.flush()

    # Taking

    def hear(self) -> None:
        """Take what was handed to this shard."""
        inside = self._doors[self._index].inside
        while True:
            try:
                body, ancillary, _, _ = inside.recvmsg(2 * DATAGRAM_BYTES_MAX, ANCILLARY_BYTES)
            except BlockingIOError:
                return
            fds = array.array("i")
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
            given = iter(fds)
            for item in _decoder.decode(body):
                try:
                    self._take(item, None if item.rest else next(given, None))
                except Exception:
                    if self._failed is None:
                        raise
                    self._failed("connection of another shard")

    def _take(self, item: HandedSocket, fd: int | None) -> None:
        key = (item.sender, item.token)
        if item.rest:
            begun = self._begun.get(key)
            if begun is None:
                return
            sock, peer, data, missing, listener = begun
            data += item.data
            if missing > len(item.data):
                self._begun[key] = (sock, peer, data, missing - len(item.data), listener)
                return
            del self._begun[key]
            self.takers[item.kind](sock, peer, bytes(data), listener)
            return
        if fd is None:
            return  # this process is out of descriptors: the kernel closed it
        if item.kind in self.descriptor_takers:
            self.descriptor_takers[item.kind](fd, item.peer)
            return
        sock = socket.socket(fileno=fd)
        sock.setblocking(False)
        if item.missing:
            self._begun[key] = (sock, item.peer, bytearray(item.data), item.missing, item.listener)
        else:
            self.takers[item.kind](sock, item.peer, item.data, item.listener)
