"""The work that new topics make is their publishers', and that of topics which are matched again is theirs who changed
filters: who makes much of it waits, not who publishes behind it.

A new topic is matched before its first message enters the log, so messages of others pass meanwhile. What that costs,
in visits of the filter index, is charged to the user, or to the address of a client without one; beyond the rate,
clients with new topics are not read for a time. docs/guides/security.md, "Quotas"."""

from __future__ import annotations

from collections.abc import Callable

from router.matching.groups import GroupTable
from router.matching.topic_matching import UNDER_WAY_MAX
from rumq.loop.ports import Clock
from rumq.session.connection.broker_port import ClientInfo
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.token_buckets import TokenBuckets
from rumq.session.state.persistent_sessions import holder_of

FREE_VISITS = 64  # index nodes a new topic may visit without waiting; ordinary filters cost less
QUEUED_SECONDS = 0.01  # at least: a topic waits so long while another one of its holder is matched
QUEUE_LENGTH = 16  # with so many topics waiting, each waits QUEUED_SECONDS longer
TRIED_MAX = 4096  # topics that are known not to be cheap: they are not tried again before it is their turn


class NewTopicBudget:
    def __init__(self, groups: GroupTable, clock: Clock, limits: Callable[[], Limits]) -> None:
        """limits: those of the broker now"""
        self._groups, self._clock, self._limits = groups, clock, limits
        self._topics, self._visits = TokenBuckets(), TokenBuckets()
        self._changes = TokenBuckets()  # of visits too: who creates topics may subscribe meanwhile
        self._tried: dict[str, None] = {}
        self._changer = ""  # the holder that has changed filters last
        self._allowance = 0.0  # visits that may still be charged to it for that
        self._current: dict[str, str] = {}  # holder -> the one of its topics whose match takes several turns

    def match(self, client: ClientInfo, name: bytes) -> float | None:
        """Match a topic that a client is about to create.

        returns: how many seconds it has to wait before it asks again, 0.0: until the next turn; None: it is paid for"""
        now, limits, groups, topic = self._clock.monotonic, self._limits(), self._groups, name.decode()
        own, holder = client.session.key if client.session is not None else "", _holder_of(client)
        has_begun = groups.is_under_way(topic)
        if not has_begun:
            wait = max(self._topics.wait(own, now), self._visits.wait(holder, now))
            if wait:
                return wait
        current = self._current.get(holder)
        is_next = current is None or current == topic or not groups.is_under_way(current)
        if not is_next and topic in self._tried:
            return self._queued()
        left = groups.visits_left
        is_over = groups.match_ahead(topic, may_wait=is_next) is not None
        # Whoever leaves before the end has paid for what was done.
        spent = left - groups.visits_left
        free = FREE_VISITS if is_over and not has_begun else 0
        self._visits.spend(holder, max(0, spent - free), limits.new_topic_visits_per_second_max, now)
        if not is_over:
            self._note(holder, topic, is_next=is_next)
            return 0.0 if is_next else self._queued()
        self._tried.pop(topic, None)
        if current == topic:
            del self._current[holder]
        self._topics.spend(own, 1, limits.new_topics_per_second_max, now)
        return None

    def change_filters(self, client: ClientInfo) -> float:
        """A client is about to subscribe or unsubscribe, and topics that are known will be matched again.

        What that costs until somebody else changes filters is charged to this one's holder, at most a second's visits
        for each change: a loop is slowed down, and one change keeps nobody waiting, however many topics there are.

        returns: how many seconds it has to wait before it asks again; 0.0: it may"""
        now, rate = self._clock.monotonic, self._limits().new_topic_visits_per_second_max
        spent = min(float(self._groups.rematch_visits), self._allowance)
        self._groups.rematch_visits = 0
        self._changes.spend(self._changer, spent, rate, now)
        self._allowance -= spent
        holder = _holder_of(client)
        wait = self._changes.wait(holder, now)
        if not wait:
            self._changer, self._allowance = holder, float(rate)
        return wait

    def charge_will(self, client_id: str, holder: str, name: bytes) -> None:
        """A will is about to create a topic: it does not wait, but the next new topics of its owner do."""
        now, limits, groups = self._clock.monotonic, self._limits(), self._groups
        left = groups.visits_left
        groups.match_ahead(name.decode())  # what a turn has left for it; its route takes the rest
        spent = left - groups.visits_left
        self._visits.spend(holder, max(0, spent - FREE_VISITS), limits.new_topic_visits_per_second_max, now)
        self._topics.spend(client_id, 1, limits.new_topics_per_second_max, now)

    def _note(self, holder: str, topic: str, *, is_next: bool) -> None:
        """A match takes more than a turn."""
        self._tried[topic] = None
        if len(self._tried) > TRIED_MAX:
            del self._tried[next(iter(self._tried))]
        if not is_next:
            return
        if len(self._current) > 2 * UNDER_WAY_MAX:
            # Some have left.
            self._current = {each: of for each, of in self._current.items() if self._groups.is_under_way(of)}
        self._current[holder] = topic

    def _queued(self) -> float:
        """How long a topic waits until it asks again whether it is its holder's next: longer the more there are."""
        return QUEUED_SECONDS * (1 + len(self._tried) / QUEUE_LENGTH)


def _holder_of(client: ClientInfo) -> str:
    return holder_of(client.identity.user if client.identity is not None else None, client.address)
