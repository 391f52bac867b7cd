"""Stream sockets, doors and epoll of a simulated machine. What is sent arrives when the simulation says so.

A stream keeps its order; between streams there is none. As with the sockets of a kernel: what was sent before its
sender died still arrives, what nobody has read when a receiver dies is gone, and sending to one that is gone fails."""

import errno
import os
import select
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any


class Stream:
    """One end of a stream socket, in the place of a `socket.socket`.

    coming: on its way here; here: can be read; ended: nothing follows `here`; on_data: of an end that no shard has"""

    def __init__(self, network: "Network", name: str) -> None:
        self.network, self.name = network, name
        self.fd = network.next_fd()
        self.other: Stream
        self.owner: Poller | None = None  # of the process that has it open; None: a client, or a door
        self.poller: Poller | None = None
        self.on_data: Callable[[Stream], None] | None = None
        self.coming, self.here = bytearray(), bytearray()
        self.capacity = network.capacity
        self.sender_is_blocked = False
        self.over = False  # the other end is closed; it may not be known here yet
        self.ended = False
        self.closed = False

    # What is asked of a socket

    def fileno(self) -> int:
        return self.fd

    def setblocking(self, _: bool) -> None: ...

    def detach(self) -> "Stream":
        """In place of a descriptor, which is all that a door carries."""
        return self

    def send(self, data: Any) -> int:
        other = self.other
        if self.ended or self.closed:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        if other.closed:  # what it said before is not all here yet, so that is not known here
            return len(data)
        room = other.capacity - len(other.coming) - len(other.here)
        if room <= 0:
            other.sender_is_blocked = True
            raise BlockingIOError
        sent = min(room, len(data))
        other.coming += memoryview(data)[:sent]
        if sent < len(data):
            other.sender_is_blocked = True
        self.network.moving[other] = None
        return sent

    def sendmsg(self, buffers: Iterable[Any]) -> int:
        return self.send(b"".join(buffers))

    def recv_into(self, view: Any) -> int:
        taken = min(len(view), len(self.here))
        if not taken:
            if self.ended:
                return 0
            raise BlockingIOError
        view[:taken] = self.here[:taken]
        self._taken(taken)
        return taken

    def recv(self, size: int) -> bytes:
        data = bytes(self.here[:size])
        if not data and not self.ended:
            raise BlockingIOError
        self._taken(len(data))
        return data

    def shutdown(self, _: int) -> None: ...

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.coming.clear()
        self.here.clear()
        self.network.moving.pop(self, None)
        if not self.other.closed:
            self.other.over = True
            self.network.moving[self.other] = None

    # What the network does

    def _taken(self, size: int) -> None:
        del self.here[:size]
        if self.sender_is_blocked and len(self.here) + len(self.coming) < self.capacity:
            self.sender_is_blocked = False
            self.other.tell(select.EPOLLOUT)

    def arrive(self, size: int) -> None:
        """So many bytes of what is coming are here; with the last one also the end, if there is one."""
        self.here += self.coming[:size]
        del self.coming[:size]
        mask = select.EPOLLIN
        if not self.coming:
            del self.network.moving[self]
            if self.over:
                self.ended = True
                mask |= select.EPOLLRDHUP
        self.tell(mask)

    def tell(self, mask: int) -> None:
        if self.poller is not None:
            self.poller.tell(self.fd, mask)
        elif self.on_data is not None:
            self.on_data(self)


class Memory:
    """Memory on its way through a door."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.owner: Poller | None = None

    def close(self) -> None:
        os.close(self.fd)


class Network:
    def __init__(self) -> None:
        self.capacity = 1 << 18
        self.streams: dict[int, Stream] = {}
        self.moving: dict[Stream, None] = {}  # ends that something is on its way to
        self._fd = 100

    def next_fd(self) -> int:
        self._fd += 1
        return self._fd

    def of(self, poller: "Poller") -> list[Stream]:
        """What a process has open."""
        return [stream for stream in self.streams.values() if stream.owner is poller]

    def pair(self, name: str, other: str) -> tuple[Stream, Stream]:
        a, b = Stream(self, name), Stream(self, other)
        a.other, b.other = b, a
        self.streams[a.fd], self.streams[b.fd] = a, b
        return a, b


class Poller:
    """In the place of an epoll set; edge triggered throughout. had: whether the last look found anything"""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.told: dict[int, int] = {}
        self.had = False

    def register(self, fd: int, _: int) -> None:
        stream = self._network.streams.get(fd)
        if stream is not None:
            stream.poller = stream.owner = self
            mask = select.EPOLLOUT
            mask |= select.EPOLLIN if stream.here else 0
            mask |= select.EPOLLIN | select.EPOLLRDHUP if stream.ended else 0
            self.told[fd] = mask

    def unregister(self, fd: int) -> None:
        self.told.pop(fd, None)
        stream = self._network.streams.get(fd)
        if stream is not None and stream.poller is self:
            stream.poller = None

    def tell(self, fd: int, mask: int) -> None:
        self.told[fd] = self.told.get(fd, 0) | mask

    def poll(self, timeout: float, _: int) -> list[tuple[int, int]]:
        found, self.told = list(self.told.items()), {}
        self.had = bool(found) or timeout == 0
        return found

    def close(self) -> None: ...


class Doors:
    """A shard's door and the way to the others'. The doors themselves outlive shards."""

    def __init__(self, network: Network, doors: list["Door"], index: int, poller: Poller) -> None:
        self._network, self._doors, self._index, self._poller = network, doors, index, poller
        self._waiting: list[tuple[int, tuple[str, Any, str, bytes, int]]] = []
        self.takers: dict[str, Callable[[Any, str, bytes, int], None]] = {}
        self.descriptor_takers: dict[str, Callable[[int, str], None]] = {}

    @property
    def fd(self) -> int:
        return self._doors[self._index].fd

    def pair(self) -> tuple[Stream, Stream]:
        ours, theirs = self._network.pair("bus", "bus")
        ours.owner = theirs.owner = self._poller
        return ours, theirs

    def give(self, shard: int, kind: str, fd: Any, peer: str = "", data: bytes = b"", listener: int = 0) -> None:
        what = Memory(fd) if kind in self.descriptor_takers else fd
        self._waiting.append((shard, (kind, what, peer, bytes(data), listener)))

    def flush(self) -> None:
        for shard, item in self._waiting:
            item[1].owner = None
            self._doors[shard].put(item)
        self._waiting.clear()

    def hear(self) -> None:
        door = self._doors[self._index]
        while door.waiting:
            kind, stream, peer, data, listener = door.waiting.popleft()
            if kind in self.descriptor_takers:
                self.descriptor_takers[kind](stream.fd, peer)
                continue
            stream.owner = self._poller
            if kind == "bus":
                # On one machine nothing that was sent before comes after this.
                for earlier in self._network.of(self._poller):
                    if earlier.over and earlier in self._network.moving:
                        earlier.arrive(len(earlier.coming))
            self.takers[kind](stream, peer, data, listener)


class Door:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.waiting: deque[tuple[str, Any, str, bytes, int]] = deque()
        self.poller: Poller | None = None

    def put(self, item: tuple[str, Any, str, bytes, int]) -> None:
        self.waiting.append(item)
        if self.poller is not None:
            self.poller.tell(self.fd, select.EPOLLIN)
