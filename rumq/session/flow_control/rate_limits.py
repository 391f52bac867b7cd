"""Rate limiters and quotas: token buckets of messages and bytes per client, user and listener; connections and topics.

A client over its rate is not read until its token bucket refills: nothing is dropped, the client's own socket fills. A
replay over its rate is not sent more. A bucket may go below zero by one read (256 KiB). Time is an argument."""
# compiled: warm

from __future__ import annotations

from typing import NamedTuple

BURST_SECONDS = 2.0  # capacity of a bucket: so many seconds of its rate


class Rate(NamedTuple):
    """Per second; 0: no limit"""

    messages: int = 0
    bytes: int = 0


ANY = Rate()


class Bucket:
    """A token bucket of messages and one of bytes."""

    __slots__ = ("_bytes", "_messages", "_rate", "_since")

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate = rate
        self._messages = rate.messages * BURST_SECONDS
        self._bytes = rate.bytes * BURST_SECONDS
        self._since = now

    def spend(self, messages: int, size: int, now: float) -> float:
        """Take tokens for what was sent; returns the seconds until the balance is zero again."""
        rate, passed = self._rate, now - self._since
        self._since = now
        wait = 0.0
        if rate.messages:
            self._messages = min(rate.messages * BURST_SECONDS, self._messages + passed * rate.messages) - messages
            wait = max(wait, -self._messages / rate.messages)
        if rate.bytes:
            self._bytes = min(rate.bytes * BURST_SECONDS, self._bytes + passed * rate.bytes) - size
            wait = max(wait, -self._bytes / rate.bytes)
        return wait

    def balance(self, now: float) -> tuple[float | None, float | None]:
        """(messages, bytes) that may be sent now, below zero what was sent too early; None: no limit."""
        rate, passed = self._rate, now - self._since
        messages = min(rate.messages * BURST_SECONDS, self._messages + passed * rate.messages)
        size = min(rate.bytes * BURST_SECONDS, self._bytes + passed * rate.bytes)
        return messages if rate.messages else None, size if rate.bytes else None


class Rates:
    """Rates of each client, of each user over all its clients, and of all together."""

    def __init__(self, client: Rate = ANY, user: Rate = ANY, everybody: Rate = ANY) -> None:
        self._client, self._user, self._everybody = client, user, everybody
        self._users: dict[str, Bucket] = {}
        self._shared: Bucket | None = None

    def become(self, other: Rates) -> None:
        """Take over other rates, for connections made from now on."""
        self._client, self._user, self._everybody = other._client, other._user, other._everybody
        self._users.clear()
        self._shared = None

    def buckets(self, user: str | None, now: float) -> tuple[Bucket, ...]:
        """The buckets of a connection of the user."""
        found = []
        if any(self._client):
            found.append(Bucket(self._client, now))
        if any(self._user) and user is not None:
            found.append(self._users.setdefault(user, Bucket(self._user, now)))
        if any(self._everybody):
            if self._shared is None:
                self._shared = Bucket(self._everybody, now)
            found.append(self._shared)
        return tuple(found)

    def leave(self, user: str) -> None:
        """The user's last connection has ended."""
        self._users.pop(user, None)


class Quotas:
    """Quotas of one listener in one shard. sending: of what clients publish; replaying: of replays of `$log/...`

    connections_max, topics_max: of one user, 0 for no limit; topics: that its messages create
    sessions_max: of one user, that outlive their connections; 0: a fair part (`PersistentSessions`)"""

    def __init__(
        self, sending: Rates | None = None, replaying: Rates | None = None, connections_max: int = 0,
        topics_max: int = 0, sessions_max: int = 0,
    ) -> None:  # fmt: skip
        self.sending, self.replaying = sending or Rates(), replaying or Rates()
        self.connections_max, self.topics_max = connections_max, topics_max
        self.sessions_max = sessions_max
        self._connections: dict[str, int] = {}
        self._topics: dict[str, int] = {}  # created by each user since the broker started

    def become(self, other: Quotas) -> None:
        """Take over other limits for what comes from now on; present connections and topics stay counted."""
        self.sending.become(other.sending)
        self.replaying.become(other.replaying)
        self.connections_max, self.topics_max = other.connections_max, other.topics_max
        self.sessions_max = other.sessions_max

    def enter(self, user: str | None) -> bool:
        """Count a connection of a user; False: it has too many. `leave` it when it ends."""
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
            self.sending.leave(user)
            self.replaying.leave(user)

    def may_add_topic(self, user: str | None) -> bool:
        return user is None or not self.topics_max or self._topics.get(user, 0) < self.topics_max

    def added_topic(self, user: str | None) -> None:
        if user is not None and self.topics_max:
            self._topics[user] = self._topics.get(user, 0) + 1
