"""How much clients may: token buckets of messages and bytes, for a client, a user, a listener; connections and topics.

Who has sent more than there is is not read for as long as that takes to come back: nothing is dropped, the client's
own socket fills. Who is replaying is not sent more. Buckets may go below nothing by one read (256 KiB). Time is an
argument. Knows no packet."""

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


class Rates:
    """Of each client, of each user over all its clients, of everybody together."""

    def __init__(self, client: Rate = ANY, user: Rate = ANY, everybody: Rate = ANY) -> None:
        self._client, self._user, self._everybody = client, user, everybody
        self._users: dict[str, Bucket] = {}
        self._shared: Bucket | None = None

    def become(self, other: Rates) -> None:
        """Other rates, for those who come from now on."""
        self._client, self._user, self._everybody = other._client, other._user, other._everybody
        self._users.clear()
        self._shared = None

    def buckets(self, user: str | None, now: float) -> tuple[Bucket, ...]:
        """Those that a connection of the user spends from."""
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
        """The user's last connection is gone."""
        self._users.pop(user, None)


class Quotas:
    """Of one listener, in one shard. sending: what clients may publish; replaying: what they may be sent of `$log/...`

    connections_max, topics_max: of one user, 0 for any number; topics: that its messages bring into being
    sessions_max: of one user, that outlive their connections; 0: what is fair"""

    def __init__(
        self, sending: Rates | None = None, replaying: Rates | None = None, connections_max: int = 0,
        topics_max: int = 0, sessions_max: int = 0,
    ) -> None:  # fmt: skip
        self.sending, self.replaying = sending or Rates(), replaying or Rates()
        self.connections_max, self.topics_max = connections_max, topics_max
        self.sessions_max = sessions_max
        self._connections: dict[str, int] = {}
        self._topics: dict[str, int] = {}  # of each user, since the broker started

    def become(self, other: Quotas) -> None:
        """Other limits, for those who come from now on; who and what is here is still counted."""
        self.sending.become(other.sending)
        self.replaying.become(other.replaying)
        self.connections_max, self.topics_max = other.connections_max, other.topics_max
        self.sessions_max = other.sessions_max

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
            self.sending.leave(user)
            self.replaying.leave(user)

    def may_add_topic(self, user: str | None) -> bool:
        return user is None or not self.topics_max or self._topics.get(user, 0) < self.topics_max

    def added_topic(self, user: str | None) -> None:
        if user is not None and self.topics_max:
            self._topics[user] = self._topics.get(user, 0) + 1
