"""Apply subscribe, unsubscribe, connect and disconnect to readers and groups. MQTT 5.0, 3.8, 3.10, 4.8.

Requests have been checked already."""
# compiled: warm

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from router.delivery import Delivery
from router.effects import (
    CatchUpPaused,
    DeliverRetained,
    FindRetained,
    FindStart,
    Merged,
    ReplayStarted,
    readers_served,
)
from router.group_membership import GroupMembership
from router.matching.feed import Feed
from router.matching.groups import GroupTable
from router.matching.retained import FoundRetained, RetainedRecord, RetainedView
from router.readers.reader import DeliverySink, GroupKey, Reader
from router.readers.subscriber import NONE, Subscriber
from router.readers.subscription import Subscription, TopicPermit, merge
from router.replay_ends import ReplayEnds
from router.shared_group_rules import SharedGroupRules

LSN_MAX = 1 << 62
LATE_A_STEP = 64  # readers of one session that may merge into its main reader in a step


def permit_of(reader: Reader, topic_filter: str) -> TopicPermit | None:
    """What a reader may receive by one of its filters now; rules may have changed since it subscribed."""
    known = reader.group.subscriptions_of(topic_filter)
    return known[0].permit if known else None


class SubscriptionChanges:
    """Changes readers, groups and shared groups; deliveries that follow go to `delivery`."""

    def __init__(
        self, feeds: list[Feed], groups: GroupTable, delivery: Delivery, view_of: Callable[[str], RetainedView],
        is_home: Callable[[str], bool],
    ) -> None:  # fmt: skip
        """view_of: filter -> the view of retained messages that it can match

        is_home: whether a shared subscription's home is this shard"""
        self.feeds = feeds
        self.grouping = GroupMembership(feeds, groups)
        self.delivery = delivery
        self._view_of = view_of
        self.ends = ReplayEnds(feeds, delivery)
        self.sharing = SharedGroupRules(feeds, self.grouping, delivery, self._close, is_home)

    # Readers

    def _new_reader(self, subscriber: Subscriber, subscriptions: list[Subscription], committed_only: bool) -> Reader:
        return self.new_reader(subscriber, subscriber.next_number(), subscriptions, committed_only)

    def new_reader(
        self, subscriber: Subscriber, number: int, subscriptions: list[Subscription], committed_only: bool
    ) -> Reader:
        """A reader at the end of the log, but not live yet."""
        group = self.grouping.join(subscriber, subscriptions, committed_only)
        reader = Reader(number, group, [feed.mark(False) for feed in self.feeds], subscriber.key)
        reader.sink = subscriber.sink
        return reader

    def _close(self, reader: Reader) -> None:
        reader.closed = True
        if reader.turns is not None:
            reader.turns.finish(reader)
        for live in reader.group.live:
            live.discard(reader)
        for feed in self.feeds:
            for waiting in feed.waiters.values():
                if reader in waiting:
                    waiting.remove(reader)
        reader.sink = None
        self.grouping.leave(reader.group)

    # Subscriptions

    def subscribe(self, subscriber: Subscriber, subscription: Subscription, retained: bool) -> None:
        """Add or replace an ordinary subscription, from now on; send retained messages if asked to."""
        asked = subscription.topic_filter
        main = subscriber.main
        if asked in subscriber.replays:
            self._close(subscriber.replays.pop(asked))
        if asked in subscriber.late:
            reader = subscriber.late[asked]
            self.grouping.regroup(subscriber, reader, [subscription])
        elif main is None:
            reader = subscriber.main = self._new_reader(subscriber, [subscription], False)
            subscriber.main_subscriptions = {asked: subscription}
            self.delivery.catch_up(reader)
        elif asked in subscriber.main_subscriptions or main.caught_up():
            reader = main
            self.grouping.add_to_main(subscriber, asked, subscription)
        else:
            reader = self._new_reader(subscriber, [subscription], False)
            subscriber.add_reader(asked, reader, is_replay=False)
            self.delivery.resume(reader)
        if retained:
            self._send_retained(subscriber, reader, subscription)

    def _send_retained(self, subscriber: Subscriber, reader: Reader, subscription: Subscription) -> None:
        marks = [feed.mark(False) for feed in self.feeds]
        if reader.sink is None:
            # The client is connected, but nothing goes out yet: what was in flight is still being resent, or it holds.
            subscriber.defer_retained(subscription, marks)
            return
        # What is published from now on comes live; with no_local a client's own messages do not.
        self._find_retained(subscriber, reader, subscription, None if subscription.no_local else marks)

    def _find_retained(
        self, subscriber: Subscriber, reader: Reader, subscription: Subscription, below: list[int] | None
    ) -> None:
        asked = subscription.topic_filter
        view = self._view_of(asked)
        if len(view):
            search = view.search(asked, below, lambda: subscriber.has(asked), lambda: subscriber.permit_of(asked))
            self.delivery.effects.append(DeliverRetained(reader, search, merge([subscription])))
        elsewhere = [feed.index for feed in self.feeds if feed.partition.is_mirrored]
        if elsewhere:
            marks = {index: below[index] if below is not None else LSN_MAX for index in elsewhere}
            self.delivery.effects.append(FindRetained(reader, subscription, marks))

    def retained_found(self, reader: Reader, subscription: Subscription, messages: list[RetainedRecord]) -> None:
        """Deliver retained messages of other partitions, if the subscription still exists."""
        is_there = any(
            replace(each, permit=subscription.permit) == subscription
            for each in reader.group.subscriptions_of(subscription.topic_filter)
        )
        if reader.sink is not None and is_there:
            given = FoundRetained(messages, lambda: permit_of(reader, subscription.topic_filter))
            self.delivery.effects.append(DeliverRetained(reader, given, merge([subscription])))

    # Other shards

    def interest(
        self, subscriber: Subscriber, topic_filters: list[str], own: list[int], cursors: dict[int, int] | None
    ) -> None:
        """Add filters of another shard: a subscriber with one reader, which reads only the partitions `own`."""
        wanted = [Subscription(topic_filter, 2, False, True) for topic_filter in topic_filters]
        reader = subscriber.main
        if reader is None:
            group = self.grouping.private(GroupKey(frozenset(), False, subscriber.key, is_shard=True), wanted)
            reader = subscriber.main = Reader(0, group, [feed.mark(False) for feed in self.feeds], subscriber.key)
            reader.sink = subscriber.sink
            reader.waiting = (1 << len(self.feeds)) - 1
            for index in own:
                reader.waiting &= ~(1 << index)
                if cursors is not None:
                    reader.cursors[index] = min(cursors[index], self.feeds[index].visible_lsn)
        else:
            for subscription in wanted:
                self.grouping.add(reader.group, subscription)
        self.delivery.catch_up(reader)

    def no_interest(self, subscriber: Subscriber, topic_filters: list[str]) -> None:
        if subscriber.main is not None:
            for topic_filter in topic_filters:
                if subscriber.main.group.subscriptions_of(topic_filter):
                    self.grouping.discard(subscriber.main.group, topic_filter)

    # Replays

    def replay(
        self, subscriber: Subscriber, asked: str, subscription: Subscription, start: str | tuple[str, int]
    ) -> None:
        """Add a subscription that starts in the past."""
        self.unsubscribe(subscriber, asked)
        reader = self._new_reader(subscriber, [subscription], True)
        subscriber.add_reader(asked, reader, is_replay=True)
        if subscription.tells_end:
            self.ends.expect(reader)
        if isinstance(start, str) and any(feed.partition.is_mirrored for feed in self.feeds):
            # Partitions of other shards cannot be read before their owners know the filter.
            reader.cursors = [feed.mark(True) for feed in self.feeds]
            start = (start, 0)
        if isinstance(start, tuple):
            self.find_start(reader, start)
        else:
            for feed in self.feeds:
                first = feed.partition.first_lsn if start == "earliest" else feed.mark(True)
                reader.cursors[feed.index] = first
            self.delivery.resume(reader)

    def find_start(self, reader: Reader, start: tuple[str, int]) -> None:
        """Search the lsns where a replay starts; until then its reader waits."""
        reader.waiting = (1 << len(self.feeds)) - 1
        reader.start = start
        kind, value = start
        (subscription,) = reader.group.subscriptions
        if kind == "latest":
            effect = FindStart(reader, None, None, None)
        elif kind == "earliest":
            effect = FindStart(reader, 0, None, None)
        elif kind == "time":
            effect = FindStart(reader, value, None, None)
        elif kind == "retained":
            effect = FindStart(reader, value, None, None, retained=subscription.topic_filter)
        else:
            effect = FindStart(reader, None, subscription.topic_filter.encode(), value)
        self.delivery.effects.append(effect)

    def start_found(self, reader: Reader, lsns: dict[int, int], retained: list[RetainedRecord]) -> None:
        for index, lsn in lsns.items():
            reader.cursors[index] = lsn
        reader.waiting = 0
        reader.start = None
        self.delivery.effects.append(ReplayStarted(reader))
        if retained and reader.sink is not None:
            (subscription,) = reader.group.subscriptions
            given = FoundRetained(retained, lambda: permit_of(reader, subscription.topic_filter))
            self.delivery.effects.append(DeliverRetained(reader, given, merge([subscription])))
        self.delivery.resume(reader)

    def unsubscribe(self, subscriber: Subscriber, asked: str) -> None:
        """Remove a subscription; an unknown one is no error."""
        if asked in subscriber.pending_retained:
            del subscriber.pending_retained[asked]
        if asked in subscriber.main_subscriptions and subscriber.main is not None:
            if len(subscriber.main_subscriptions) > 1:
                self.grouping.remove_from_main(subscriber, asked)
            else:
                del subscriber.main_subscriptions[asked]
                self._close(subscriber.main)
                subscriber.main = None
        for readers in (subscriber.late, subscriber.replays):
            if asked in readers:
                self._close(readers.pop(asked))
        if subscriber.turns is not None:
            self.delivery.fill_turns(subscriber.turns)
        if asked in subscriber.shares:
            self.sharing.leave(subscriber, subscriber.shares.pop(asked), [])

    def permit(self, subscriber: Subscriber, permits: dict[str, TopicPermit | None]) -> None:
        """Change permissions of subscriptions. permits: by filter as written; others stay as they are"""
        main = subscriber.main
        for asked, permit in permits.items():
            known = subscriber.main_subscriptions.get(asked)
            if known is not None and known.permit is not permit:
                subscriber.main_subscriptions[asked] = replace(known, permit=permit)
                if main is not None and main.group.private:
                    self.grouping.add(main.group, subscriber.main_subscriptions[asked])
            for readers in (subscriber.late, subscriber.replays):
                if asked in readers:
                    reader = readers[asked]
                    (wanted,) = reader.group.subscriptions
                    self.grouping.regroup(subscriber, reader, [replace(wanted, permit=permit)])
        if main is not None and not main.group.private:
            self.grouping.regroup(subscriber, main, subscriber.main_subscriptions.values())

    # Sessions

    def attach(self, subscriber: Subscriber, sink: DeliverySink) -> None:
        """The client is connected: its readers continue at their cursors."""
        subscriber.sink = sink
        if subscriber.shape_changed:
            subscriber.shape_changed = False
            for reader in subscriber.readers():
                self.grouping.regroup(subscriber, reader, reader.group.subscriptions)
            for share in subscriber.shares.values():
                (subscription,) = share.members[subscriber].reader.group.subscriptions
                self.sharing.member(share, subscriber, subscription, 0)
        for share in subscriber.shares.values():
            member = share.members[subscriber]
            member.reader.sink = sink
            member.parked = False
        for reader in subscriber.readers():
            reader.sink = sink
        if subscriber.turns is not None:
            subscriber.turns.reset([*subscriber.late.values(), *subscriber.replays.values()])
        pending_retained, subscriber.pending_retained = subscriber.pending_retained, NONE
        for asked, (subscription, below) in pending_retained.items():
            if (reader_of := subscriber.late.get(asked, subscriber.main)) is not None:
                # What retention took from the log meanwhile does not come from there.
                below = [max(lsn, feed.partition.first_lsn) for lsn, feed in zip(below, self.feeds, strict=True)]
                self._find_retained(subscriber, reader_of, subscription, below)
        self.ready(subscriber)

    def detach(self, subscriber: Subscriber) -> None:
        """The client has disconnected: its session and cursors stay."""
        subscriber.sink = None
        if subscriber.turns is not None:
            subscriber.turns.reset(())
        for reader in subscriber.readers():
            reader.sink = None
            for feed in self.feeds:
                if reader.group.live[feed.index].discard(reader):
                    reader.cursors[feed.index] = feed.mark(reader.group.wants.committed_only)
        for share in subscriber.shares.values():
            share.members[subscriber].reader.sink = None

    def end(self, subscriber: Subscriber, unacknowledged: list[tuple[int, int, int]]) -> None:
        """The session has ended: remove all of it."""
        subscriber.sink = None
        if subscriber.turns is not None:
            subscriber.turns.reset(())
        subscriber.pending_retained = NONE
        for share in subscriber.shares.values():
            self.sharing.leave(subscriber, share, unacknowledged)
        subscriber.shares = NONE
        for reader in subscriber.readers():
            self._close(reader)
        subscriber.main = None
        subscriber.main_subscriptions = subscriber.late = subscriber.replays = NONE

    def ready(self, subscriber: Subscriber) -> None:
        """The client's sink has room and credit."""
        main = subscriber.main
        if main is not None:
            self.delivery.catch_up(main)
        if subscriber.turns is not None:
            self.delivery.resume_turns(subscriber.turns)
        if subscriber.late and main is not None and main.caught_up():
            busy = readers_served(self.delivery.effects)
            for asked in list(islice(subscriber.late, LATE_A_STEP)):
                # Round robin: those examined now are the last to be examined again.
                reader = subscriber.late[asked] = subscriber.late.pop(asked)
                if reader in busy or main in busy:
                    # What its sink refuses comes back to this reader, which must still exist.
                    if reader.caught_up():
                        self.delivery.effects.append(CatchUpPaused(reader, if_taken=True))
                elif reader.caught_up():
                    (subscription,) = reader.group.subscriptions
                    del subscriber.late[asked]
                    self._close(reader)
                    self.grouping.add_to_main(subscriber, asked, subscription)
                    self.delivery.effects.append(Merged(subscriber.key, asked, main))
        for share in subscriber.shares.values():
            share.members[subscriber].parked = False
            self.delivery.run_share(share)

    def _wait_no_more(self, reader: Reader, index: int) -> None:
        """Cancel a wait behind records that were refused: the reader continues there once it is ready."""
        feed = self.feeds[index]
        reader.waiting &= ~(1 << index)
        for waiting in feed.waiters.values():
            if reader in waiting:
                waiting.remove(reader)
        if reader in feed.ahead:
            feed.ahead.remove(reader)

    def blocked(self, reader: Reader, index: int, lsn: int) -> None:
        """A reader's sink refused everything from `lsn` on."""
        share = reader.share
        reader.refused &= ~(1 << index)
        if reader.turns is not None and not reader.closed and reader.sink is not None:
            reader.turns.enqueue(reader)
        if share is None:
            if reader.waiting >> index & 1:
                self._wait_no_more(reader, index)
            if reader.group.live[index].discard(reader):
                reader.cursors[index] = lsn
            else:  # several pieces were in delivery: the first one refused counts
                reader.cursors[index] = min(lsn, reader.cursors[index])
        elif reader is not share.reader:
            self.sharing.blocked(reader, index, lsn)
