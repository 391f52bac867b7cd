"""A relay to a leader that may give its client to the next one: it counts bytes, and can stop sending.

When it has stopped and the client's state is here, and every byte that the leader had sent is on to the client, the
client's connection is free for another relay. `rumq.cluster.links.client_moves`"""

from __future__ import annotations

from collections.abc import Callable

from rumq.net.connection import CLOSED, Connection
from rumq.net.pump import Pump
from rumq.net.transport.relay import ClientEnd, RelaySocket, ShardEnd
from rumq.net.transport.stream_connection import StreamConnection
from rumq.session.flow_control.listener_policy import ListenerPolicy
from rumq.session.moves.moved_client import MovedClient

STATE_SECONDS_MAX = 0.5  # until the state of a client is here, once its leader has closed the relay


class MovableClientEnd(ClientEnd):
    """sent: bytes of the client that went to the leader; is_held: no more do; moved: its state, once it is here"""

    __slots__ = ("_departed", "_expected", "_later", "is_held", "moved", "policy", "sent")

    def __init__(
        self, pump: Pump, connection: Connection, near: RelaySocket, policy: ListenerPolicy, sent: int,
        departed: Callable[[MovableClientEnd, MovedClient], None], later: Callable[[float, Callable[[], None]], None],
    ) -> None:  # fmt: skip
        """sent: bytes that went with the greeting; departed: called when the client is free to go on elsewhere"""
        super().__init__(pump, connection, near)
        near.link = near.shard_end = MovableShardEnd(self)
        self.policy, self.sent = policy, sent
        self._departed, self._later = departed, later
        self.is_held = False
        self.moved: MovedClient | None = None
        self._expected = 0

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        self.sent += end - pos
        return super().receive(data, pos, end)

    def shard_has_room(self) -> None:
        if self.is_held:
            self._is_paused = False
        else:
            super().shard_has_room()

    def hold(self) -> None:
        """Send nothing more of the client."""
        self.is_held = True
        self.transport.pause_reading()

    def go_on(self) -> None:
        """The leader stays."""
        if self.is_held and self.moved is None:
            self.is_held = False
            if not self._is_paused:
                self.transport.resume_reading()

    def move(self, moved: MovedClient, expected: int) -> None:
        """The client goes on elsewhere. expected: bytes for it that the leader has sent in all"""
        self.moved, self._expected = moved, expected
        self.look()

    def look(self) -> None:
        """Leave, if all is here."""
        end = self.near.shard_end
        if self.moved is None or self.closed or not isinstance(end, MovableShardEnd):
            return
        if end.received >= self._expected:
            self._part()
            self._departed(self, self.moved)

    def _part(self) -> None:
        near, connection = self.near, self.transport
        self.closed = True
        near.link = CLOSED
        near.shard_end = None
        if isinstance(connection, StreamConnection):
            connection.on_room = None
        self._pump.drop(near)

    def shard_lost(self, why: str, end: Callable[[], None]) -> None:
        """The leader has closed the relay; the state may be on its way over the other link."""

        def give_up() -> None:
            if not self.closed:
                end()

        self._later(STATE_SECONDS_MAX, give_up)


class MovableShardEnd(ShardEnd):
    """received: bytes for the client"""

    __slots__ = ("_movable", "received")

    def __init__(self, client_end: MovableClientEnd) -> None:
        super().__init__(client_end)
        self._movable = client_end
        self.received = 0

    @property
    def is_held(self) -> bool:
        return self._movable.is_held

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        self.received += end - pos
        taken = super().receive(data, pos, end)
        if self._movable.moved is not None:
            self._movable.look()
        return taken

    def lost(self, why: str) -> None:
        if self._movable.is_held and self._movable.moved is None and not self._movable.closed:
            self._movable.shard_lost(why, self.end)
        else:
            super().lost(why)
