"""Which group a reader belongs to, and which topics are matched again when that changes.

Readers with few subscriptions share an interned group and its encoded bytes. A reader with many has a private one,
where adding or removing a subscription costs the levels of its filter, not a pass over all the others."""
# compiled: warm

from __future__ import annotations

from collections.abc import Collection, Iterable

from router.matching.feed import Feed
from router.matching.groups import GroupTable
from router.readers.reader import Group, GroupKey, Reader, subscription_set
from router.readers.subscriber import Subscriber
from router.readers.subscription import Subscription

SHARED_MAX = 16  # with more subscriptions a reader has a group of its own


class GroupMembership:
    """Changes groups, and invalidates the routes of every feed."""

    def __init__(self, feeds: list[Feed], groups: GroupTable) -> None:
        self.feeds = feeds
        self.groups = groups
        self.shared_max = SHARED_MAX

    # Any group

    def interned(self, wants: GroupKey) -> Group:
        """The group for this key, with one member more."""
        group, fresh = self.groups.join(wants)
        self.forget_routes(fresh)
        return group

    def private(self, wants: GroupKey, subscriptions: Iterable[Subscription] = ()) -> Group:
        """A group for one reader, with these subscriptions; others may be added later."""
        group = self.groups.private(wants)
        for subscription in subscriptions:
            self.add(group, subscription)
        return group

    def add(self, group: Group, subscription: Subscription) -> None:
        """Add a subscription to a private group, or replace the one with its filter. Cost: the levels of the filter"""
        if self.groups.add(group, subscription):
            self.forget_routes((subscription.topic_filter,))

    def discard(self, group: Group, topic_filter: str) -> None:
        """Remove a filter from a private group; KeyError when it is not there. Cost: the levels of the filter"""
        self.groups.discard(group, topic_filter)
        self.forget_routes((topic_filter,))

    def leave(self, group: Group) -> None:
        """Remove one member."""
        self.forget_routes(self.groups.leave(group))

    def remove_some_filters(self) -> None:
        """Remove a bounded number of filters of large groups that have ended."""
        if self.groups.remove_some_filters():
            # Routes to it do no harm, but keep it in memory.
            for feed in self.feeds:
                feed.routes.forget()

    def forget_routes(self, filters: Iterable[str]) -> None:
        """Match the topics of these filters again when their next message comes."""
        for topic_filter in filters:
            if "+" in topic_filter or "#" in topic_filter:
                for feed in self.feeds:
                    feed.routes.forget()
            else:
                name = topic_filter.encode()
                for feed in self.feeds:
                    known = feed.partition.topic_ids.get(name)
                    if known is not None:
                        feed.routes.forget_topic(known)

    def renumber_forms(self) -> None:
        """Renumber the forms of groups that have had too many. Between steps: effects name forms by number."""
        for group in self.groups.crowded:
            group.forget_forms()
            self.groups.renumbered(group)
        self.groups.crowded.clear()
        for feed in self.feeds:
            feed.routes.forget()

    # A subscriber's

    def join(self, subscriber: Subscriber, subscriptions: Collection[Subscription], committed_only: bool) -> Group:
        """The group for a reader with these subscriptions."""
        many = len(subscriptions) > self.shared_max
        own = many or subscriber.personal or any(s.no_local for s in subscriptions)
        shape = (subscriber.shape, subscriber.key if own else None)
        if many:
            return self.private(GroupKey(frozenset(), committed_only, shape), subscriptions)
        return self.interned(GroupKey(subscription_set(subscriptions), committed_only, shape))

    def regroup(self, subscriber: Subscriber, reader: Reader, subscriptions: Collection[Subscription]) -> None:
        """Move a reader to the group of another set of subscriptions; its cursors stay."""
        old = reader.group
        reader.group = self.join(subscriber, subscriptions, old.wants.committed_only)
        for before, after in zip(old.live, reader.group.live, strict=True):
            if before.discard(reader):
                after.add(reader)
        self.leave(old)

    def add_to_main(self, subscriber: Subscriber, asked: str, subscription: Subscription) -> None:
        """Add a subscription to the main reader, or replace the one with its filter."""
        main = subscriber.main
        assert main is not None
        subscriber.main_subscriptions[asked] = subscription
        if main.group.private:
            self.add(main.group, subscription)
        else:
            self.regroup(subscriber, main, subscriber.main_subscriptions.values())

    def remove_from_main(self, subscriber: Subscriber, asked: str) -> None:
        """Remove a subscription from the main reader, which has others."""
        main = subscriber.main
        assert main is not None
        subscription = subscriber.main_subscriptions.pop(asked)
        # Hysteresis: else alternately adding and removing one would rebuild everything each time.
        if main.group.private and len(subscriber.main_subscriptions) > self.shared_max // 2:
            self.discard(main.group, subscription.topic_filter)
        else:
            self.regroup(subscriber, main, subscriber.main_subscriptions.values())
