"""Every group of readers, interned or private, and which groups a filter leads to."""
# compiled: hot

from __future__ import annotations

from collections.abc import Hashable

from router.kernels.filter_index import FilterIndex
from router.matching.local_filters import LocalFilters
from router.matching.topic_matching import MATCH_VISITS, UNDER_WAY_MAX, FilterTargets, TopicMatching
from router.readers.reader import Group, GroupKey, Target
from router.readers.subscription import Subscription

FORMS_MAX = 1 << 14  # of one group: with more of them they are numbered anew
FOR_GOOD = 1 << 60  # a turn that never comes: a delivery waits for the match
AHEAD_VISITS = 768  # of a turn, for topics that are new: a fifth of a millisecond
TRIED_VISITS = 64  # of a match ahead, whatever others have used: most end with them
KEPT_VISITS = 256  # a match ahead that cost less is made again: it costs less than to keep it
FILTERS_AT_ONCE = 64  # of a group that has ended: with more of them it is removed in pieces
REMOVED_AT_ONCE = 16  # of such a group, in a turn


class GroupTable:
    """Every group, interned by its key or private, and filter -> groups."""

    def __init__(self, partitions: int, *, records_changes: bool = True) -> None:
        """records_changes: of `local_filters`, for its `take_changes`, which somebody has to call then"""
        self._partitions = partitions
        self._by_wants: dict[GroupKey, Group] = {}
        self._by_filter: dict[str, dict[Group, Target]] = {}
        self._targets: dict[Hashable, Target] = {}  # by group and options
        self._private = 0
        self.committed_only = 0  # so many of them get only what is committed
        self.filters = FilterIndex()
        self.visits_left = 1 << 60  # nodes that matches may look at in this turn
        self.visits_reserved = 0  # those of them that are not for matches ahead
        self.rematch_visits = 0  # made for topics that were matched before, since somebody last took them
        self.turn = 0  # so many have begun
        self._under_way: dict[str, TopicMatching] = {}  # topics whose match takes more than a turn
        self.ended: list[Group] = []  # groups without a member whose filters `remove_some_filters` removes
        self.crowded: list[Group] = []  # with too many forms: to be renumbered
        self.local_filters = LocalFilters(records_changes=records_changes)

    def __len__(self) -> int:
        return len(self._by_wants) + self._private

    def join(self, wants: GroupKey) -> tuple[Group, list[str]]:
        """The group for `wants` with one member more, and the filters that are new to it."""
        group = self._by_wants.get(wants)
        fresh: list[str] = []
        if group is None:
            group = self._by_wants[wants] = Group(wants, self._partitions)
            self.committed_only += group.committed_only
            fresh = group.filters
            for topic_filter in fresh:
                self._map(topic_filter, group)
        group.count += 1
        return group, fresh

    def private(self, wants: GroupKey) -> Group:
        """A group of one member, without subscriptions: `add` them. `wants` has the rest."""
        assert not wants.subscriptions
        group = Group(wants, self._partitions, private=True)
        self.committed_only += group.committed_only
        group.count = 1
        self._private += 1
        return group

    def leave(self, group: Group) -> list[str]:
        """Remove one member; returns the filters that ended with the group.

        Those of a large group are removed later, by `remove_some_filters`: until then they match, without readers."""
        group.count -= 1
        if group.count:
            return []
        self.committed_only -= group.committed_only
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
        for topic_filter in group.some_filters(REMOVED_AT_ONCE):
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
        topic_filter = subscription.topic_filter
        groups = self._by_filter.get(topic_filter)
        if groups is None or group not in groups:
            self._map(topic_filter, group)
            return True
        before, groups[group] = groups[group], self._take_target(topic_filter, group)
        self._lead(topic_filter, groups, before, groups[group])
        self._drop_target(before)
        return True

    def discard(self, group: Group, topic_filter: str) -> None:
        """Remove a filter from a private group; its topics must be matched again. Cost: the levels of the filter

        raises: KeyError when it is not there"""
        group.remove_filter(topic_filter)
        self._unmap(topic_filter, group)

    def route(self, topic: str) -> tuple[tuple[Group, int], ...] | None:
        """As `match`, within the visits left in this turn; None: the match continues in another turn."""
        matching = self._under_way.get(topic)
        if matching is None:
            if self.visits_left <= 0 or not self._has_room():
                return None
            matching = TopicMatching(topic)
            self.visits_left -= MATCH_VISITS
        matching.wanted_at = FOR_GOOD
        if not matching.over and self.visits_left > 0:
            self.visits_left -= matching.go_on(self.filters, self.visits_left)
        if not matching.over:
            self._under_way[topic] = matching
            return None
        self._under_way.pop(topic, None)
        return self._note_crowded(matching.route)

    def begin_turn(self, visits: int) -> None:
        """Grant a turn its visits, less those that the last one had too many, but a quarter in any case."""
        ahead, least = AHEAD_VISITS, visits >> 2
        self.turn += 1
        self.visits_reserved = max(least, visits - ahead)
        self.visits_left = min(visits, max(least, self.visits_left + visits))

    def go_on(self) -> None:
        """Continue the matches that are under way, the oldest first."""
        for matching in self._under_way.values():
            if self.visits_left <= 0:
                return
            if not matching.over:
                spent = matching.go_on(self.filters, self.visits_left)
                self.visits_left -= spent
                if matching.wanted_at == FOR_GOOD:
                    self.rematch_visits += spent

    def is_under_way(self, topic: str) -> bool:
        """Whether a match has begun, and was continued in this turn or the last one."""
        matching = self._under_way.get(topic)
        return matching is not None and matching.wanted_at >= self.turn - 1

    def match_ahead(self, topic: str, *, may_wait: bool = True) -> int | None:
        """Match a topic before its first message, within the visits left in this turn; returns how many it has cost.

        may_wait: it may continue in the next turn, if somebody asks again then; otherwise it is only tried
        returns: None where it is not over. A cheap one never waits for expensive ones"""
        matching = self._under_way.get(topic)
        visits_max, has_room = self.visits_left - self.visits_reserved, False
        if matching is None:
            matching = TopicMatching(topic)
            self.visits_left -= MATCH_VISITS
            has_room = may_wait and self._has_room()
            visits_max = max(visits_max, TRIED_VISITS) if has_room else TRIED_VISITS
        matching.wanted_at = self.turn
        if not matching.over and visits_max > 0:
            self.visits_left -= matching.go_on(self.filters, visits_max)
        if topic not in self._under_way and has_room and (matching.visits >= KEPT_VISITS or not matching.over):
            self._under_way[topic] = matching
        return matching.visits if matching.over else None

    def _has_room(self) -> bool:
        """Whether one more match may be under way; evicts one that nobody asks for any more."""
        if len(self._under_way) < UNDER_WAY_MAX:
            return True
        done = next(
            (
                topic
                for topic, matching in self._under_way.items()
                if matching.over or matching.wanted_at < self.turn - 1
            ),
            None,
        )
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
        matching = TopicMatching(topic)
        matching.go_on(self.filters, 1 << 60)
        return self._note_crowded(matching.route)

    def _note_crowded(self, route: tuple[tuple[Group, int], ...]) -> tuple[tuple[Group, int], ...]:
        for group, number in route:
            if number >= FORMS_MAX and group not in self.crowded:
                self.crowded.append(group)
        return route

    def _take_target(self, topic_filter: str, group: Group) -> Target:
        """The target of a filter of a group, with one filter more."""
        subscriptions = group.subscriptions_of(topic_filter)
        if not group.private and len(group) == 1:  # no other filter leads to it
            only = Target(group, None, subscriptions)
            only.filters = 1
            return only
        key = group, *[each.options for each in subscriptions]
        target = self._targets.get(key)
        if target is None:
            target = self._targets[key] = Target(group, key, subscriptions)
        target.filters += 1
        return target

    def _drop_target(self, target: Target) -> None:
        target.filters -= 1
        if not target.filters and target.key is not None:
            del self._targets[target.key]

    def _lead(
        self, topic_filter: str, groups: dict[Group, Target], before: Target | None, after: Target | None
    ) -> None:
        """The targets of a filter have changed from `before` to `after`. groups: those of the filter now"""
        index = self.filters
        number = index.numbers[topic_filter]
        if len(groups) == 1:
            (index.targets[number],) = groups.values()
        elif type(index.targets[number]) is not FilterTargets:
            index.targets[number] = FilterTargets(groups)
        for topic, matching in list(self._under_way.items()) if self._under_way else ():
            if matching.wanted_at < self.turn - 1:
                del self._under_way[topic]  # its publisher has left
            else:
                matching.changed(topic_filter, number, before, after, is_gone=not groups)

    def _map(self, topic_filter: str, group: Group) -> None:
        groups = self._by_filter.setdefault(topic_filter, {})
        groups[group] = target = self._take_target(topic_filter, group)
        self.filters.add(topic_filter)
        self._lead(topic_filter, groups, None, target)
        if not group.wants.is_shard:
            self.local_filters.add(topic_filter)

    def _unmap(self, topic_filter: str, group: Group) -> None:
        groups = self._by_filter[topic_filter]
        target = groups.pop(group)
        self._lead(topic_filter, groups, target, None)
        self._drop_target(target)
        if not groups:
            del self._by_filter[topic_filter]
        self.filters.discard(topic_filter)
        if not group.wants.is_shard:
            self.local_filters.discard(topic_filter)
