"""The feeding of a shard's followers: each gets what partitions write, and first what it lacks."""
# compiled: hot

from __future__ import annotations

from collections.abc import Callable

from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.leader_core import LeaderCore
from rumq.shards.replication.feeding.copied_partition import CopyPiece, Trimmed
from rumq.shards.replication.feeding.copies import Copies, PartitionCopies
from rumq.shards.replication.feeding.feeder import Feeder, Feeds, FollowerOutbox
from rumq.shards.replication.feeding.piece_frames import frames_of


class Feeding:
    def __init__(
        self, copies: Copies, core: LeaderCore, feeds: Feeds, link_of: Callable[[str], FollowerOutbox | None]
    ) -> None:
        """link_of: of a follower, None while there is none"""
        self._copies, self._core, self._feeds, self._link_of = copies, core, feeds, link_of

    # What is written

    def end_turn(self) -> None:
        """Send what was written to those who have all before it."""
        if self._copies.take_news():
            for copied in self._copies.by_key.values():
                self._send(copied)

    def group_ended(self, copied: PartitionCopies) -> None:
        """A group of a partition is on disk: send the rest of it."""
        self._send(copied)
        if copied.source.group_ended():
            self._core.compare(copied.source.key)

    def _send(self, copied: PartitionCopies) -> None:
        source = copied.source
        was_irregular = source.is_irregular
        told = source.take()
        if source.is_irregular and not was_irregular:
            for feeder in copied.feeders.values():
                feeder.stop()
            copied.group_bytes = 0
        pieces = [piece for piece in told if isinstance(piece, CopyPiece)]
        if pieces:
            copied.group_bytes += sum(len(piece.data) for piece in pieces)
            live = [feeder for feeder in copied.feeders.values() if feeder.is_live]
            if live:
                frames = frames_of(pieces, self._core.epoch, source.key)
                for feeder in live:
                    feeder.told(frames, pieces[-1].after)
        for trim in told:
            if isinstance(trim, Trimmed):
                for feeder in copied.feeders.values():
                    feeder.trimmed(trim)

    # Followers

    def begin(self, feed: fx.FeedFollower) -> None:
        """A follower has said what it has of a partition."""
        link, copied = self._link_of(feed.peer), self._copies.by_key.get(feed.partition)
        if link is None or copied is None:
            return
        feeder = copied.feeders.get(feed.peer)
        if feeder is None:
            feeder = copied.feeders[feed.peer] = Feeder(copied.source, link, self._feeds)
        if copied.source.is_irregular:
            return  # compared anew when the group has ended
        feeder.begin(feed.segments)

    def go_on(self, copied: PartitionCopies) -> None:
        """With those that catch up: a group has ended."""
        if copied.source.lagging:
            for feeder in list(copied.feeders.values()):
                feeder.go_on()

    def synced(self, peer: str, message: m.Synced) -> None:
        copied = self._copies.by_key.get(message.partition)
        if copied is None:
            return
        copied.places[peer] = (message.name, message.stop)
        feeder = copied.feeders.get(peer)
        if feeder is not None:
            feeder.synced(message.name, message.stop)

    def drained(self, peer: str) -> None:
        """There is room in its outbox again."""
        for copied in self._copies.by_key.values():
            feeder = copied.feeders.get(peer)
            if feeder is not None:
                feeder.go_on()

    def lost(self, peer: str) -> None:
        """Its link has ended."""
        for copied in self._copies.by_key.values():
            copied.places.pop(peer, None)
            feeder = copied.feeders.pop(peer, None)
            if feeder is not None:
                feeder.stop()

    def stop(self) -> None:
        """Every copy is compared anew."""
        for copied in self._copies.by_key.values():
            for feeder in copied.feeders.values():
                feeder.stop()
