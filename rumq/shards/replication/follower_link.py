"""One connection to a follower's process, which the pump serves like a client's: messages go out, answers come in."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rumq.cluster.replication.messages import ReplicaMessage
from rumq.net.frames import MessageReader, Raw, encode
from rumq.shards.replication.feeding.piece_frames import Frames

OUTBOX_BYTES_MAX = 8 << 20  # beyond it a follower is fed from disk
ANSWER_BYTES_MAX = 16 << 20  # of a frame of a follower: the list of its segments is the longest


class ReplicaTransport(Protocol):
    """What is used of `rumq.net.connection.Connection`. room: bytes until its queue is full; refused: for want of room,
    so `drained` is called once there is some; is_quiet: set where what came changed nothing: a turn of such needs no
    stages"""

    room: int
    refused: bool
    is_quiet: bool

    @property
    def peer(self) -> str: ...

    def write(self, data: Raw) -> None: ...
    def close(self) -> None: ...


class ReplicaLink:
    """The `ConnectionHandler` of a connection between replicas. peer: the other's node id"""

    is_bus = True
    client_id = None
    attempt = 1

    __slots__ = ("_frames", "_lost", "_received", "closed", "drained", "peer", "transport")

    def __init__(
        self, transport: ReplicaTransport, peer: str, received: Callable[[ReplicaLink, ReplicaMessage], bool],
        lost: Callable[[ReplicaLink, str], None], drained: Callable[[ReplicaLink], None],
        bytes_max: int = ANSWER_BYTES_MAX,
    ) -> None:  # fmt: skip
        """received: returns whether a message has changed anything

        lost: told once, of the connection's end, whoever ended it; drained: there is room in its outbox again
        bytes_max: of a frame that comes"""
        self.transport, self.peer = transport, peer
        self._received, self._lost = received, lost
        self.drained: Callable[[], None] = lambda: drained(self)
        self._frames: MessageReader[ReplicaMessage] = MessageReader(ReplicaMessage, bytes_max)
        self.closed = False

    @property
    def room(self) -> int:
        return self.transport.room

    def wants_room(self) -> None:
        self.transport.refused = True

    def say(self, message: ReplicaMessage, raw: Sequence[Raw] = ()) -> None:
        """Send a message at the end of the turn; raw buffers must not change until then."""
        if not self.closed:
            for part in encode(message, raw):
                self.transport.write(part)

    def write(self, frames: Frames) -> None:
        if not self.closed:
            for part in frames.parts:
                self.transport.write(part)

    def receive(self, data: Raw, pos: int, end: int) -> int:
        """Handle what came, all of it. raises: ValueError: it is no message"""
        has_changed = False
        with memoryview(data) as view:
            for message, _ in self._frames.feed(view[pos:end]):
                if self.closed:
                    return end
                has_changed |= self._received(self, message)
        if not has_changed:
            self.transport.is_quiet = True
        return end

    def lost(self, why: str) -> None:
        """The connection has ended."""
        if not self.closed:
            self.closed = True
            self._lost(self, why)

    def turned_away(self, why: str) -> None:
        self.give_up(why)

    def dismiss(self, reason: object, why: str | None = None) -> None: ...

    def end(self, *, with_will: bool = True) -> None:
        """Close the connection after a fault."""
        self.give_up("given up after a fault")

    def give_up(self, why: str) -> None:
        self.lost(why)
        self.transport.close()
