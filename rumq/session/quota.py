"""How fast clients may send: token buckets of messages and of bytes, for a client, a user, a listener.

Who has spent more than there is is not read for as long as that takes to come back: nothing is dropped, the client's
own socket fills. Buckets may go below nothing by one read (256 KiB). Time is an argument. Knows no packet."""

from __future__ import annotations

from typing import NamedTuple

BURST_SECONDS = 2.0  # what a bucket holds: so many seconds of its rate


class Rate(NamedTuple):
    """A second; 0: no limit"""

    messages: int = 0
    bytes: int = 0


ANY = Rate()


class Bucket:
    """What may be sent at once, and comes back at a rate."""

    __slots__ = ("_bytes", "_messages", "_rate", "_since")

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._messages = rate.messages * BURST_SECONDS
        self._bytes = rate.bytes * BURST_SECONDS
        self._since = now

    def spend(self, messages: int, size: int, now: float) -> float:
        """Take what was sent; returns for how many seconds nothing more may be."""
        rate, passed = self._rate, now - self._since
        self._since = now
        wait = 0.0
        if rate.messages:
            self._messages = (
                min(rate.messages * BURST_SECONDS, self._messages + passed * rate.messages) - messages
            )
            wait = max(wait, -self._messages / rate.messages)
        if rate.bytes:
            self._bytes = min(rate.bytes * BURST_SECONDS, self._bytes + passed * rate.bytes) - size
            wait = max(wait, -self._bytes / rate.bytes)
        return wait


class Quotas:
    """Of one listener, in one shard. client, user, all: rates of each client, of each user, of everybody together

    connections_max: of one user, 0 for any number"""

    def __init__(
        self, client: Rate = ANY, user: Rate = ANY, all_clients: Rate = ANY, connections_max: int = 0
    ) -> None:  # fmt: skip
        self._client, self._user, self._all_clients = client, user, all_clients
        self.connections_max = connections_max
        self._users: dict[str, Bucket] = {}
        self._connections: dict[str, int] = {}
        self._everybody: Bucket | None = None

    def become(self, other: Quotas) -> None:
        """Other limits, for those who come from now on; who is here is still counted."""
        self._client, self._user, self._all_clients = other._client, other._user, other._all_clients
        self.connections_max = other.connections_max
        self._users.clear()
        self._everybody = None

    def enter(self, user: str | None) -> bool:
        """A connection of a user comes in; False: it has too many. Each is to `leave`."""
        if user is None:
            return True
        count = self._connections.get(user, 0)
        if self.connections_max and count >= self.connections_max:
            return False
        self._connections[user] = count + 1
        return True

    def leave(self, user: str | None) -> None:
        if user is None:
            return
        left = self._connections.get(user, 1) - 1
        if left:
            self._connections[user] = left
        else:
            self._connections.pop(user, None)
            self._users.pop(user, None)

    def buckets(self, user: str | None, now: float) -> tuple[Bucket, ...]:
        """Those that a connection of the user spends from."""
        found = []
        if any(self._client):
            found.append(Bucket(self._client, now))
        if any(self._user) and user is not None:
            found.append(self._users.setdefault(user, Bucket(self._user, now)))
        if any(self._all_clients):
            if self._everybody is None:
                self._everybody = Bucket(self._all_clients, now)
            found.append(self._everybody)
        return tuple(found)
