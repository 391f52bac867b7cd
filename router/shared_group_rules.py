"""Membership and assignment of shared subscriptions, here and across shards. MQTT 5.0, 4.8.2.

A shared group has one home, the shard that its key hashes to. The home has the cursors and assigns lsn ranges to its
own members and to other shards, in proportion to their members. Another shard reads its ranges and assigns them to its
members by the same rules; what none of them accepts goes back to the home. Messages between shards are effects."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from router.delivery import Delivery
from router.effects import ConfirmShareLeft, ReportShareWeight, ReturnShare, ShareBegun
from router.group_membership import GroupMembership
from router.matching.feed import Feed
from router.readers.range_queue import Range
from router.readers.reader import DeliverySink, Group, GroupKey, LiveReaders, Reader
from router.readers.shared_group import NO_RANGES, Member, SharedGroup, adjoined, without
from router.readers.subscriber import Subscriber
from router.readers.subscription import DeliveryOptions, Subscription, merge


class SharedGroupRules:
    def __init__(
        self,
        feeds: list[Feed],
        grouping: GroupMembership,
        delivery: Delivery,
        close: Callable[[Reader], None],
        is_home: Callable[[str], bool],
    ) -> None:
        """is_home: whether a key's home is this shard"""
        self._feeds, self._grouping, self._delivery = feeds, grouping, delivery
        self._close, self._is_home = close, is_home
        self.shares: dict[str, SharedGroup] = {}
        # A member is never live and has no place of its own: it gets only what is assigned to it.
        self._never_live = [LiveReaders() for _ in feeds]
        self._no_cursors = [0] * len(feeds)
        self._forms: dict[DeliveryOptions, list[DeliveryOptions]] = {}  # of members, by their only one
        self._shape: Hashable = None  # of the last member: thousands of one session come one after the other

    # Members of this shard

    def join(self, subscriber: Subscriber, asked: str, subscription: Subscription) -> None:
        """Add a session to a shared group; `subscription` has the plain filter."""
        share = self._share_of(asked, subscription.topic_filter)
        known = share.members.get(subscriber)
        number = known.reader.number if known is not None else subscriber.next_number()
        self.member(share, subscriber, subscription, number)
        subscriber.add_share(asked, share)
        self._report_weight(share)
        self._delivery.run_share(share)

    def member(self, share: SharedGroup, subscriber: Subscriber, subscription: Subscription, number: int) -> Member:
        """Add a session to a share, or change how it wants its messages."""
        shape = (subscriber.shape, subscriber.key)
        if shape != self._shape:
            self._shape = shape
        wants = GroupKey((subscription,), False, self._shape, is_shard=subscriber.is_shard)
        # Not interned: a member gets only what is assigned to it.
        group = Group(wants, len(self._feeds), live=self._never_live)
        form = merge([subscription])
        group.forms = self._forms.setdefault(form, [form])  # for good: no topic is matched for it
        member = share.members.get(subscriber)
        if member is None:
            member = share.add(subscriber, Reader(number, group, self._no_cursors, share.key))
        else:
            member.reader.group = group
        member.reader.sink = subscriber.sink
        self._delivery.groups.mark(share)
        return member

    def _share_of(self, key: str, topic_filter: str) -> SharedGroup:
        share = self.shares.get(key)
        if share is None:
            share = self.new(key, topic_filter)
            if share.is_here:
                for feed in self._feeds:
                    share.reader.group.live[feed.index].add(share.reader)
        return share

    def new(self, asked: str, topic_filter: str) -> SharedGroup:
        """A group without members, at the end of the log, but not live yet."""
        everything = Subscription(topic_filter, qos=2)
        is_here = self._is_home(asked)
        # With its home in another shard it reads assigned ranges only: nothing is routed to it.
        group = self._grouping.interned(GroupKey((everything,), False, asked, is_shard=not is_here))
        reader = Reader(0, group, [feed.mark(False) for feed in self._feeds], asked)
        share = self.shares[asked] = SharedGroup(asked, topic_filter, reader, is_here=is_here)
        reader.share = share
        self._delivery.groups.mark(share)
        return share

    def leave(self, subscriber: Subscriber, share: SharedGroup, unacknowledged: list[tuple[int, int, int]]) -> None:
        """Remove a session. unacknowledged: (reader number, partition, lsn) of messages that go to another member"""
        member = share.members.pop(subscriber)
        for number, index, lsn in unacknowledged:
            if number == member.reader.number:
                share.returned.append((index, lsn, lsn + 1))
        member.reader.sink = None
        # Assigned in this step: without a sink nothing of it is delivered.
        share.returned.extend(member.given)
        member.given = NO_RANGES
        if member.before:
            share.depart(member)
        self._continue_or_end(share)
        self._report_weight(share)  # behind what comes back

    def _continue_or_end(self, share: SharedGroup) -> None:
        self._delivery.groups.mark(share)
        if share.members or share.is_held:  # a shard that has not reported yet may have members
            self._delivery.run_share(share)
            return
        if share.returned and not share.is_here:
            self._delivery.effects.append(ReturnShare(share.key, list(share.returned)))
            share.returned.clear()  # what a former member returns later goes back alone: `blocked`
        del self.shares[share.key]
        self._close(share.reader)

    def _report_weight(self, share: SharedGroup) -> None:
        if not share.is_here:
            self._delivery.effects.append(ReportShareWeight(share.key, share.topic_filter, len(share.members)))

    def blocked(self, reader: Reader, index: int, lsn: int) -> None:
        """A member's sink refused everything from `lsn` on."""
        share = reader.share
        assert isinstance(share, SharedGroup)
        member = next((m for m in share.members.values() if m.reader is reader), share.departed.get(reader))
        if member is None:
            return
        share.give_back(member, index, lsn)
        self._delivery.groups.mark(share)
        if self.shares.get(share.key) is share:
            self._delivery.run_share(share)
        elif not share.is_here and share.returned:  # it ended meanwhile
            self._pass_on(share)

    def _pass_on(self, ended: SharedGroup) -> None:
        """What came back to a group without members goes to who joined in the step of its end, or to the home: that
        would assign nothing more to us if it heard, behind the new member, that nobody here has room."""
        present = self.shares.get(ended.key)
        if present is None:
            self._delivery.effects.append(ReturnShare(ended.key, list(ended.returned)))
        else:
            present.returned.extend(ended.returned)
            self._delivery.run_share(present)
        ended.returned.clear()

    def truncate(self, partition: int, next_lsn: int) -> dict[str, list[Range]]:
        """The owner died before it wrote records from `next_lsn` on: their lsns will be reused, so forget ranges.

        returns: key -> what of it the group's home, another shard, has assigned to this one"""
        dropped = {}
        for key, share in self.shares.items():
            ranges = share.truncate(partition, next_lsn)
            self._delivery.groups.mark(share)
            if ranges and not share.is_here:
                dropped[key] = ranges
        return dropped

    # As the home of a group: other shards are members

    def set_weight(self, shard: Subscriber, key: str, topic_filter: str, weight: int) -> None:
        """Another shard has so many members of a group whose home is here."""
        share = self.shares.get(key)
        if weight:
            if share is None:
                share = self._share_of(key, topic_filter)
                self._delivery.effects.append(ShareBegun(key, [feed.mark(False) for feed in self._feeds]))
            everything = Subscription(topic_filter, qos=2)
            member = self.member(share, shard, everything, 0)
            member.weight = weight
            member.parked = False  # what came to it before its client had joined, it gave back
            self._delivery.run_share(share)
            return
        if share is not None and shard in share.members:
            self._remove(share, shard)
        self._delivery.effects.append(ConfirmShareLeft(shard, key))

    def _remove(self, share: SharedGroup, shard: Subscriber) -> None:
        share.returned.extend(share.members.pop(shard).outstanding)
        self._continue_or_end(share)

    def shard_lost(self, shard: Subscriber) -> None:
        """The link to another shard is down; it may come back with its members, and say what they have."""
        for share in self.shares.values():
            member = share.members.get(shard)
            if member is not None:
                member.reader.sink = None

    def shard_joined(
        self,
        shard: Subscriber,
        sink: DeliverySink,
        weights: dict[str, tuple[str, int]],
        handed: dict[str, list[Range]],
    ) -> None:
        """Another shard is connected (again). weights: key -> (filter, members); handed: ranges of its members

        Outstanding ranges that did not reach its members are assigned again."""
        shard.sink = sink
        for key, ranges in handed.items():
            share = self.shares.get(key)
            if share is not None:
                share.skip(ranges, shard)
                self._delivery.groups.mark(share)
        for share in list(self.shares.values()):
            member = share.members.get(shard)
            if member is not None:
                self._delivery.groups.mark(share)
                # What this step has assigned to it before is assigned again: it must not go over the new link as well.
                member.reader.sink = None
                share.returned.extend(member.outstanding)
                share.add(shard, Reader(0, member.reader.group, self._no_cursors, share.key))
                if share.key not in weights:
                    self._remove(share, shard)
        for key, (topic_filter, weight) in weights.items():
            self.set_weight(shard, key, topic_filter, weight)

    def hold(self) -> None:
        """Assign nothing of the groups that were restored, until every shard has reported what its members have."""
        for share in self.shares.values():
            share.is_held = share.is_here

    def prune(self) -> None:
        """Every shard has reported its members: end groups that have none, and go on with those that were held."""
        for share in list(self.shares.values()):
            if share.is_held or not share.members:
                share.is_held = False
                self._continue_or_end(share)

    def ranges_returned(self, shard: Subscriber, key: str, ranges: list[Range]) -> None:
        """Another shard returns ranges: no member there has capacity."""
        share = self.shares.get(key)
        if share is None:
            return
        member = share.members.get(shard)
        if member is None:
            return  # what it had was returned when it left
        member.parked = True
        member.finish(ranges)
        share.returned.extend(ranges)
        self._delivery.run_share(share)

    def ranges_returned_early(self, shard: Subscriber, key: str, ranges: list[Range]) -> None:
        """Another shard has no member for these ranges. Those not outstanding were requeued when its last one left."""
        member = self.member_of(shard, key)
        if member is not None:
            self.ranges_returned(shard, key, without(ranges, without(ranges, member.outstanding)))

    def member_of(self, shard: Subscriber, key: str) -> Member | None:
        share = self.shares.get(key)
        return share.members.get(shard) if share is not None else None

    def shard_ready(self, shard: Subscriber, key: str) -> None:
        """Another shard's members have capacity."""
        member = self.member_of(shard, key)
        if member is not None:
            member.parked = False
            self._delivery.run_share(self.shares[key])

    def ranges_done(self, shard: Subscriber, key: str, ranges: list[Range]) -> None:
        """Another shard has delivered these ranges."""
        member = self.member_of(shard, key)
        if member is not None:
            member.finish(ranges)
            self._delivery.groups.mark(member.share)

    # As another shard: the home assigns ranges

    def assign(self, key: str, ranges: list[Range]) -> None:
        """The home assigns these ranges to members here."""
        share = self.shares.get(key)
        if share is None:  # the last member has just left, and the home does not know yet
            self._delivery.effects.append(ReturnShare(key, ranges, early=True))
        else:
            share.returned.extend(ranges)
            self._delivery.run_share(share)

    def came_back(self, key: str, ranges: list[Range]) -> None:
        """No member here has room for what another one did not keep, and the home is away: it will assign it again,
        unless it is told that it was delivered."""
        share = self.shares.get(key)
        if share is not None:
            share.recent.replace(without(share.recent, adjoined(ranges)))

    def home_lost(self, is_there: Callable[[str], bool]) -> None:
        """The home of some groups died: ranges not delivered yet, it will assign again."""
        for share in self.shares.values():
            if not share.is_here and is_there(share.key):
                share.returned.clear()
                share.is_parked = False
