"""The lease of a leader: for how long no other leader can have committed anything. Sans-IO.

R15, docs/explanation/replication.md.
It is given by the followers, not by the control plane: who answers a beat promises nobody a higher epoch for
`HOLD_SECONDS`. So the leader holds the lease until `LEASE_SECONDS` after the sending of the last beat that a majority
has answered. It knows no clock: times are arguments, monotonic seconds of the leader's node."""

from __future__ import annotations

from collections import deque
from math import inf

from rumq.cluster.control.records import ShardRecord
from rumq.cluster.replication.quorum import groups

LEASE_SECONDS = 0.35  # from the sending of a beat
HOLD_SECONDS = 0.4  # from its arrival; the difference is for clocks that go at different rates
NOT_LEASED = -1  # in an answer instead of the beat's count: the follower holds nothing back


class MajorityLease:
    """node: of the leader"""

    def __init__(self, node: str) -> None:
        self._node = node
        self._count = 0
        self._sent: dict[str, deque[tuple[int, float]]] = {}  # by peer: (count, when), not answered yet
        self._promise_sent: dict[str, float] = {}
        self._answered: dict[str, float] = {}  # by peer: when that was sent which it has answered last

    def linked(self, peer: str, now: float) -> None:
        """A `Promise` goes over a new link, the first that the follower hears of this leader over it."""
        self.forget(peer)
        self._promise_sent[peer] = now

    def promised(self, peer: str) -> None:
        """The follower has answered the first `Promise` of its link: it hears this leader from then on."""
        self._note(peer, self._promise_sent.pop(peer, -inf))

    def sent(self, peer: str, now: float) -> int:
        """A beat goes to a follower, not before `now`. returns: its count"""
        self._count += 1
        self._sent.setdefault(peer, deque()).append((self._count, now))
        return self._count

    def answered(self, peer: str, count: int) -> None:
        """A follower has answered a beat. count: as it came; 0: of a version that does not say which one"""
        sent = self._sent.get(peer)
        while sent:
            number, when = sent[0]
            if count and number > count:
                break
            sent.popleft()
            if count in (0, number):
                # Answers come in the order of the beats: one without a count is that of the oldest beat.
                self._note(peer, when)
                break

    def heard_since(self, peer: str, since: float) -> bool:
        """Whether a follower has answered something that was sent after a moment."""
        return self._answered.get(peer, -inf) > since

    def _note(self, peer: str, when: float) -> None:
        self._answered[peer] = max(self._answered.get(peer, -inf), when)

    def forget(self, peer: str) -> None:
        """The link to a follower is about to end: when it has, the follower holds nothing back."""
        self._sent.pop(peer, None)
        self._promise_sent.pop(peer, None)
        self._answered.pop(peer, None)

    def begin_anew(self) -> None:
        """The lease is given up, as before a hand-over: what was sent until now counts for nothing."""
        self._answered.clear()
        self._promise_sent.clear()
        for sent in self._sent.values():
            for at, (count, _) in enumerate(sent):
                sent[at] = (count, -inf)

    def until(self, record: ShardRecord) -> float:
        """When the lease ends, unless more is answered; inf where this node is a majority by itself."""
        return min(self._until(group) for group in groups(record))

    def _until(self, group: list[str]) -> float:
        ordered = sorted((self._confirmed_at(each) for each in group), reverse=True)
        return ordered[len(group) // 2] + LEASE_SECONDS

    def _confirmed_at(self, node: str) -> float:
        return inf if node == self._node else self._answered.get(node, -inf)
