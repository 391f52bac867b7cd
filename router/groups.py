"""Every group of readers, interned or private, and which groups a filter leads to."""

from __future__ import annotations

from router.reader import Group, GroupKey
from router.subscription import Subscription
from router.topic_matching import MATCH_VISITS, UNDER_WAY_MAX, TopicMatching
from router.trie import FilterTrie

FORMS_MAX = 1 << 14  # of one group: with more of them they are numbered anew
FILTERS_AT_ONCE = 64  # of a group that has ended: with more of them it is removed in pieces


class Groups:
    """Every group, interned by its key or private, and filter -> groups."""

    def __init__(self, partitions: int, *, records_changes: bool = True) -> None:
        """records_changes: for `take_changes`, which somebody has to call then"""
        self._partitions, self._records_changes = partitions, records_changes
        self._by_wants: dict[GroupKey, Group] = {}
        self._by_filter: dict[str, dict[Group, None]] = {}
        self._private = 0
        self.filters = FilterTrie()
        self.visits_left = 1 << 60  # nodes that matches may look at in this turn
        self._under_way: dict[str, TopicMatching] = {}  # topics whose match takes more than a turn
        self.ended: list[Group] = []  # groups without a member whose filters `remove_some_filters` removes
        self.crowded: list[Group] = []  # with too many forms: to be renumbered
        self.local_filters: dict[str, int] = {}  # filter -> groups of this shard's own readers that have it
        # Filters that came into `local_filters` or left it since `take_changes`
        self.changed_filters: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._by_wants) + self._private

    def join(self, wants: GroupKey) -> tuple[Group, list[str]]:
        """The group for `wants` with one member more, and the filters that are new to it."""
        group = self._by_wants.get(wants)
        fresh: list[str] = []
        if group is None:
            group = self._by_wants[wants] = Group(wants, self._partitions)
            fresh = group.filters
            for topic_filter in fresh:
                self._map(topic_filter, group)
        group.count += 1
        return group, fresh

    def private(self, wants: GroupKey) -> Group:
        """A group of one member, without subscriptions: `add` them. `wants` has the rest."""
        assert not wants.subscriptions
        group = Group(wants, self._partitions, private=True)
        group.count = 1
        self._private += 1
        return group

    def leave(self, group: Group) -> list[str]:
        """Remove one member; returns the filters that ended with the group.

        Those of a large group are removed later, by `remove_some_filters`: until then they match, without readers."""
        group.count -= 1
        if group.count:
            return []
        if group.private and len(group) > FILTERS_AT_ONCE:
            self._private -= 1
            self.ended.append(group)
            return []
        if group.private:
            self._private -= 1
        else:
            del self._by_wants[group.wants]
        gone = group.filters
        for topic_filter in gone:
            self._unmap(topic_filter, group)
        return gone

    def remove_some_filters(self) -> bool:
        """Remove a bounded number of filters of the first ended group; returns whether it is done."""
        group = self.ended[0]
        for topic_filter in group.some_filters(FILTERS_AT_ONCE):
            group.remove_filter(topic_filter)
            self._unmap(topic_filter, group)
        if len(group):
            return False
        del self.ended[0]
        return True

    def add(self, group: Group, subscription: Subscription) -> bool:
        """Add a subscription to a private group, or replace the one with its filter. Cost: the levels of the filter

        returns: whether the topics that the filter matches must be matched again"""
        if not group.set_subscription(subscription):
            return False
        if group not in self._by_filter.get(subscription.topic_filter, ()):
            self._map(subscription.topic_filter, group)
        elif self._under_way:
            self._changed(subscription.topic_filter, group, True)
        return True

    def discard(self, group: Group, topic_filter: str) -> None:
        """Remove a filter from a private group; its topics must be matched again. Cost: the levels of the filter

        raises: KeyError when it is not there"""
        group.remove_filter(topic_filter)
        self._unmap(topic_filter, group)

    def _count_local(self, topic_filter: str, more: int) -> None:
        count = self.local_filters.get(topic_filter, 0) + more
        if count:
            self.local_filters[topic_filter] = count
        else:
            del self.local_filters[topic_filter]
        if self._records_changes and count == (more == 1):
            self.changed_filters[topic_filter] = None

    def take_changes(self) -> tuple[list[str], list[str]]:
        """Filters that (came into, left) `local_filters` since the last call."""
        changed, self.changed_filters = self.changed_filters, {}
        return [f for f in changed if f in self.local_filters], [
            f for f in changed if f not in self.local_filters
        ]

    def route(self, topic: str) -> tuple[tuple[Group, int], ...] | None:
        """As `match`, within the visits left in this turn; None: the match continues in another turn."""
        matching = self._under_way.get(topic)
        if matching is None:
            if self.visits_left <= 0 or not self._has_room():
                return None
            matching = TopicMatching(topic, self.filters.walk(topic))
            self.visits_left -= MATCH_VISITS
        if not matching.over and self.visits_left > 0:
            self.visits_left -= matching.go_on(self.filters, self._by_filter, self.visits_left)
        if not matching.over:
            self._under_way[topic] = matching
            return None
        self._under_way.pop(topic, None)
        return self._note_crowded(matching.route)

    def go_on(self) -> None:
        """Continue the matches that are under way, the oldest first."""
        for matching in self._under_way.values():
            if self.visits_left <= 0:
                return
            if not matching.over:
                self.visits_left -= matching.go_on(self.filters, self._by_filter, self.visits_left)

    def _has_room(self) -> bool:
        """Whether one more match may be under way; evicts a finished one that nobody asked for."""
        if len(self._under_way) < UNDER_WAY_MAX:
            return True
        done = next((topic for topic, matching in self._under_way.items() if matching.over), None)
        if done is None:
            return False
        del self._under_way[done]
        return True

    def renumbered(self, group: Group) -> None:
        """The forms of a group have other numbers."""
        for matching in self._under_way.values():
            matching.renumbered(group)

    def match(self, topic: str) -> tuple[tuple[Group, int], ...]:
        """Each group that wants the topic, with the number of the form it gets, or DENIED."""
        filters_of: dict[Group, list[str]] = {}
        for topic_filter in self.filters.match(topic):
            for group in self._by_filter[topic_filter]:
                filters_of.setdefault(group, []).append(topic_filter)
        return self._note_crowded(
            tuple((group, group.form_number(filters, topic)) for group, filters in filters_of.items())
        )

    def _note_crowded(self, route: tuple[tuple[Group, int], ...]) -> tuple[tuple[Group, int], ...]:
        for group, number in route:
            if number >= FORMS_MAX and group not in self.crowded:
                self.crowded.append(group)
        return route

    def _changed(self, topic_filter: str, group: Group, leads: bool) -> None:
        for matching in self._under_way.values():
            matching.changed(topic_filter, group, leads)

    def _map(self, topic_filter: str, group: Group) -> None:
        self._by_filter.setdefault(topic_filter, {})[group] = None
        self.filters.add(topic_filter)
        if self._under_way:
            self._changed(topic_filter, group, True)
        if not group.wants.is_shard:
            self._count_local(topic_filter, 1)

    def _unmap(self, topic_filter: str, group: Group) -> None:
        groups = self._by_filter[topic_filter]
        del groups[group]
        if not groups:
            del self._by_filter[topic_filter]
        self.filters.discard(topic_filter)
        if self._under_way:
            self._changed(topic_filter, group, False)
        if not group.wants.is_shard:
            self._count_local(topic_filter, -1)
