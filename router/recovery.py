"""Recreate the readers and shared groups of an earlier run at their cursors, before the first client connects.

What is restored is passed in; nothing is delivered."""

from __future__ import annotations

from collections.abc import Callable

from router.readers.range_queue import Range
from router.readers.reader import Reader
from router.readers.subscriber import Subscriber
from router.readers.subscription import Subscription
from router.subscription_changes import SubscriptionChanges


class Recovery:
    """Creates readers and shared groups at given cursors."""

    def __init__(self, subscribing: SubscriptionChanges) -> None:
        self._subscribing = subscribing

    def reader(
        self, subscriber: Subscriber, number: int, subscriptions: list[Subscription], cursors: list[int],
        redelivered_below: list[int] | None, *, committed_only: bool,
    ) -> Reader:  # fmt: skip
        """A reader at `cursors`. redelivered_below: as of `Reader`"""
        reader = self._subscribing.new_reader(subscriber, number, subscriptions, committed_only)
        reader.cursors = list(cursors)
        reader.redelivered_below = redelivered_below
        subscriber.last_number = max(subscriber.last_number, number)
        if any(subscription.tells_end for subscription in subscriptions):
            self._subscribing.ends.expect(reader)  # anew, where the log ends now
        return reader

    def main(
        self, subscriber: Subscriber, number: int, subscriptions: dict[str, Subscription], cursors: list[int],
        redelivered_below: list[int] | None,
    ) -> None:  # fmt: skip
        """subscriptions: by the filter as the client wrote it"""
        subscriber.main = self.reader(
            subscriber, number, list(subscriptions.values()), cursors, redelivered_below, committed_only=False
        )
        subscriber.main_subscriptions = subscriptions

    def find_start(self, reader: Reader, start: tuple[str, int]) -> None:
        """Search the start of a replay again."""
        self._subscribing.find_start(reader, start)

    def share(
        self, asked: str, topic_filter: str, cursors: list[int], returned: list[Range], had: Callable[[], list[Range]]
    ) -> None:
        """A shared subscription. returned: (partition, first lsn, next lsn) to be handed out again first

        had: of one whose home is another shard, ranges that members here were delivered"""
        share = self._subscribing.sharing.new(asked, topic_filter)
        if not share.is_here:
            share.recent.extend(had())
            return
        share.reader.cursors = list(cursors)
        share.returned.extend(returned)

    def member(
        self, subscriber: Subscriber, number: int, asked: str, subscription: Subscription,
        redelivered_below: list[int] | None,
    ) -> None:  # fmt: skip
        """Add a session to a restored shared group."""
        share = self._subscribing.sharing.shares[asked]
        member = self._subscribing.sharing.member(share, subscriber, subscription, number)
        member.reader.redelivered_below = redelivered_below
        subscriber.add_share(share.key, share)
        subscriber.last_number = max(subscriber.last_number, number)
