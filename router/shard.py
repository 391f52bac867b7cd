"""The router of one shard: commands in, effects out. It dispatches; the rules are in the modules beside it.

`step(commands)` never waits: reading from the log's memory is a call, everything that may wait leaves as an effect."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commitlog.chunk import FLAG_RETAIN, Chunk
from commitlog.log.partition_types import PartitionReader
from router import commands as c
from router.commands import Appended, Committed
from router.delivery import Delivery
from router.effects import Effect
from router.matching.feed import Feed
from router.matching.groups import GroupTable
from router.matching.remote_feed import RemoteFeed
from router.matching.retained import RetainedView
from router.matching.topic_matching import VISITS_A_TURN
from router.subscription_changes import SubscriptionChanges


class ShardRouter:
    """Routing state of one shard: feeds of all partitions, groups, retained messages."""

    def __init__(
        self,
        partitions: list[PartitionReader],
        backlog_records_max: int = 0,
        is_home: Callable[[str], bool] = lambda key: True,
        *,
        has_peers: bool = True,
    ) -> None:
        """is_home: whether the home of a shared subscription, by its key, is this shard; has_peers: there are others"""
        self.groups = GroupTable(len(partitions), records_changes=has_peers)
        self.feeds = [
            (RemoteFeed if partition.is_mirrored else Feed)(index, partition, self.groups)
            for index, partition in enumerate(partitions)
        ]
        self._remote = {feed.index: feed for feed in self.feeds if isinstance(feed, RemoteFeed)}
        self.retained = RetainedView()
        self.status = RetainedView()  # of the partition that is in no file: `rumq.shards.stats.sys_publisher`
        self.delivery = Delivery(self.feeds, backlog_records_max)
        self.subscribing = SubscriptionChanges(self.feeds, self.groups, self.delivery, self.view_of, is_home)
        self.sharing, self._ends = self.subscribing.sharing, self.subscribing.ends
        self._visits = VISITS_A_TURN
        self._steps: dict[type, Callable[[Any], None]] = {
            c.AddSubscription: lambda m: self.subscribing.subscribe(m.subscriber, m.subscription, m.retained),
            c.Replay: lambda m: self.subscribing.replay(m.subscriber, m.asked, m.subscription, m.start),
            c.JoinShare: lambda m: self.sharing.join(m.subscriber, m.asked, m.subscription),
            c.ShareMembers: self._share_members,
            c.ShareAway: lambda m: self.sharing.shard_lost(m.shard),
            c.ShareNews: self._share_news,
            c.SharePart: lambda m: self.sharing.assign(m.key, m.ranges),
            c.HomeAway: lambda m: self.sharing.home_lost(m.is_there),
            c.RemoveSubscription: lambda m: self.subscribing.unsubscribe(m.subscriber, m.asked),
            c.ChangePermits: lambda m: self.subscribing.permit(m.subscriber, m.permits),
            c.Attach: lambda m: self.subscribing.attach(m.subscriber, m.sink),
            c.Detach: lambda m: self.subscribing.detach(m.subscriber),
            c.End: lambda m: self.subscribing.end(m.subscriber, m.unacknowledged),
            c.Blocked: lambda m: self.subscribing.blocked(m.reader, m.partition, m.lsn),
            c.Ready: lambda m: self.subscribing.ready(m.subscriber),
            c.ColdChunks: lambda m: self.delivery.cold_read(self.feeds[m.partition], m.lsn, m.chunks),
            c.RemoteChunk: self._arrived,
            c.RemoteWatermark: self._moved,
            c.SubscribeShard: lambda m: self.subscribing.interest(m.subscriber, m.topic_filters, m.own, m.cursors),
            c.NoInterest: lambda m: self.subscribing.no_interest(m.subscriber, m.topic_filters),
            c.RetainedFound: lambda m: self.subscribing.retained_found(m.reader, m.subscription, m.messages),
            c.GoOn: lambda m: self._go_on(),
            c.StartFound: lambda m: self.subscribing.start_found(m.reader, m.lsns, m.retained),
        }

    def view_of(self, topic_filter: str) -> RetainedView:
        """The view with the retained messages that a filter can match. MQTT 5.0, 4.7.2: no wildcard matches $SYS."""
        return self.status if topic_filter.partition("/")[0] == "$SYS" else self.retained

    def begin_turn(self) -> bool:
        """Grant the turn its visits for matching; returns whether deferred deliveries wait for it: `GoOn`."""
        self.groups.begin_turn(self._visits)
        return self.delivery.has_deferred()

    def _go_on(self) -> None:
        self.groups.go_on()
        self.delivery.resume_deferred()

    def step(self, commands: list[c.Command]) -> list[Effect]:
        """Apply a batch of commands; returns the effects, in order."""
        if self.groups.crowded:
            self.subscribing.grouping.renumber_forms()
        effects = self.delivery.begin_step()
        for command in commands:
            if type(command) is Appended:
                self._appended(command)
            elif type(command) is Committed:
                self._committed(command)
            else:
                self._steps[type(command)](command)
        if self._ends.are_expected():
            self._ends.tell()
        return effects

    def _appended(self, command: Appended) -> None:
        feed = self.feeds[command.partition]
        if feed.appended(command.chunk):
            self._live(feed, command.chunk)

    def _committed(self, command: Committed) -> None:
        feed = self.feeds[command.partition]
        live, safe = feed.committed(command.lsn)
        for chunk in live:
            self._live(feed, chunk)
        if self.groups.committed_only or feed.deferred[True]:
            for chunk in safe:
                self.delivery.deliver_chunk(feed, chunk, True)
        if feed.ahead:
            self.delivery.resume_ahead(feed)

    def _share_members(self, command: c.ShareMembers) -> None:
        self.sharing.shard_joined(command.shard, command.sink, command.weights, command.handed)
        if command.prune:
            self.sharing.prune()

    def _share_news(self, command: c.ShareNews) -> None:
        shard, key = command.shard, command.key
        if command.what == "weight":
            self.sharing.set_weight(shard, key, command.topic_filter, command.weight)
        elif command.what == "back":
            self.sharing.ranges_returned(shard, key, command.ranges)
        elif command.what == "early":
            self.sharing.ranges_returned_early(shard, key, command.ranges)
        elif command.what == "ready":
            self.sharing.shard_ready(shard, key)
        else:
            self.sharing.ranges_done(shard, key, command.ranges)

    def _arrived(self, command: c.RemoteChunk) -> None:
        feed = self._remote[command.partition]
        for chunk in feed.chunk_arrived(command.chunk):
            self.delivery.deliver_chunk(feed, chunk, False)

    def _moved(self, command: c.RemoteWatermark) -> None:
        feed = self._remote[command.partition]
        safe = feed.watermark_moved(command.live_lsn, command.committed_lsn)
        if self.groups.committed_only or feed.deferred[True]:
            for chunk in safe:
                self.delivery.deliver_chunk(feed, chunk, True)
        if feed.ahead:
            self.delivery.resume_ahead(feed)

    def _live(self, feed: Feed, chunk: Chunk) -> None:
        if chunk.flags & FLAG_RETAIN:
            view = self.status if feed.partition.is_volatile else self.retained
            view.update(feed.index, chunk, feed.partition.topic_names)
        self.delivery.deliver_chunk(feed, chunk, False)
