"""Questions of an operator that another node asks the leader of a shard, over the cluster's connections.

The question is in the frame of the greeting, so it is bounded as that is; the answer is `Taken` and a line of JSON. The
asking node closes. Who may connect at all: `rumq.shards.links.cluster_listener`."""

from __future__ import annotations

from collections.abc import Callable

from rumq.admin.operations import Raw
from rumq.admin.socket.admin_socket import SECONDS_MAX, Answerer, answer_line, encode_reply, start_callback
from rumq.loop.ports import Timers
from rumq.net.connection import Connection
from rumq.net.pump import Pump
from rumq.shards.links.cluster_listener import Caller

CALLERS_MAX = 64


class AdminCallers:
    """answer: of the shard, as to its own socket; epoch: of this leader, now; failed: told of an answer that raises"""

    def __init__(
        self,
        pump: Pump,
        answer: Answerer,
        epoch: Callable[[], int],
        timers: Timers,
        failed: Callable[[str], None],
    ) -> None:
        self._pump, self._answer, self._epoch, self._timers, self._failed = (
            pump,
            answer,
            epoch,
            timers,
            failed,
        )
        self._callers: set[AdminCaller] = set()

    def __len__(self) -> int:
        """How many wait for an answer, or read it."""
        return len(self._callers)

    def take(self, caller: Caller) -> None:
        """The taker of greetings of the kind "admin"."""
        if len(self._callers) >= CALLERS_MAX:
            caller.refuse(f"{CALLERS_MAX} questions of other nodes are under way: ask again")
            return
        caller.answer_taken(self._epoch())
        connection = Connection(self._pump, caller.sock, caller.greeting.node, 1)
        asker = connection.link = AdminCaller(connection, self._callers.discard, self._failed)
        self._callers.add(asker)
        self._pump.add(connection)
        self._timers.later(SECONDS_MAX, asker.expire)
        reply = answer_line(self._answer, self._failed, caller.raw)
        if callable(reply):
            start_callback(reply, asker.say, self._failed)
        else:
            asker.say(reply)


class AdminCaller:
    """The handler of a connection from the question until the other node closes."""

    is_bus = True
    client_id = None
    attempt = 1

    __slots__ = ("_failed", "_gone", "closed", "transport")

    def __init__(
        self, transport: Connection, gone: Callable[[AdminCaller], None], failed: Callable[[str], None]
    ) -> None:
        self.transport, self._gone, self._failed = transport, gone, failed
        self.closed = False

    def say(self, reply: Raw) -> None:
        if not self.closed:
            self.transport.write(encode_reply(reply, self._failed))

    def receive(self, data: bytearray, pos: int, end: int) -> int:
        return end  # nothing belongs here

    def drained(self) -> None: ...

    def lost(self, why: str) -> None:
        self.closed = True
        self._gone(self)

    def turned_away(self, why: str) -> None:
        self.expire()

    def dismiss(self, reason: object, why: str | None = None) -> None: ...

    def expire(self) -> None:
        """It has not read its answer in time."""
        if not self.closed:
            self.lost("")
            self.transport.close()

    def end(self, *, with_will: bool = False) -> None:
        self.expire()
