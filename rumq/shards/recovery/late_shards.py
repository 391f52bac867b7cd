"""Shards that are missing when this one begins: it waits for them for a moment, and then begins without them.

What their logs would have said comes later: how far their partitions go, and which QoS 2 messages of sessions here they
have. Until then this shard stands where its last run stood, as if a link had been lost: the last checkpoint of the
journal says where. docs/explanation/replication.md, "A leader that begins while a shard is missing"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from router.shard import ShardRouter
from rumq.loop.ports import Clock, EventSink, Timers
from rumq.session.journal.entries import OPEN_END
from rumq.session.journal.replayed_state import ReplayedState
from rumq.session.state.session import Session
from rumq.shards.bus.remote_partition import RemoteFeeds, RemotePartition
from rumq.shards.peers.peer import Peer
from rumq.shards.recovery.fit_to_log import end_seen
from rumq.shards.recovery.restore import Restorer
from rumq.shards.recovery.undecided import Undecided


class LateShards:
    """patience_seconds: for how long others are waited for; None: until all are there"""

    def __init__(
        self, patience_seconds: float | None, others: Mapping[int, Peer], router: ShardRouter,
        sessions: Mapping[str, Session], undecided: Undecided, clock: Clock, timers: Timers, events: EventSink,
    ) -> None:  # fmt: skip
        self.patience_seconds = patience_seconds
        self._others, self._router, self._sessions = others, router, sessions
        self._undecided, self._clock, self._timers, self._events = undecided, clock, timers, events
        self._feeds = RemoteFeeds(router, sessions)
        self._since: float | None = None

    def are_given_up(self) -> bool:
        """Whether they have been waited for long enough; asked from the moment on in which one could begin."""
        if self._since is None:
            self._since = self._clock.monotonic
        patience = self.patience_seconds
        return patience is not None and self._clock.monotonic - self._since >= patience

    def can_begin(self, state: ReplayedState, layout: tuple[str, ...]) -> bool:
        """Whether the journal says from where this shard goes on in partitions whose owners are missing."""
        has_positions = bool(state.seen) and state.layout == layout
        return has_positions or not (state.sessions or state.shares)

    def place(self, state: ReplayedState, layout: tuple[str, ...], restorer: Restorer) -> None:
        """Take partitions of shards that were not met to end where the last run knew them to."""
        if not state.seen or state.layout != layout:
            return  # nobody has a position there, and nobody gets one before they are met
        for peer in self._others.values():
            for partition in peer.partitions:
                if not partition.is_met:
                    end_lsn = end_seen(state, partition.index)
                    found = partial(self._found, restorer, partition, end_lsn)
                    self._feeds.begin_without(partition, end_lsn, found)

    def searched(self, state: ReplayedState) -> None:
        """Before the first checkpoint of this run: QoS 2 messages below these lsns are in the journal.

        Owners say soon how far they have committed; a run that ends before that must not leave to the next one a search
        from the beginning, which finds packet ids that are long free."""
        for peer in self._others.values():
            for partition in peer.partitions:
                outgoing = partition.outgoing
                outgoing.committed_there = max(outgoing.committed_there, state.tags_from[partition.index])

    def searched_to(self, shard: int, ends: Mapping[int, int]) -> None:
        """A shard has said which QoS 2 messages of sessions here it has, all of them below these lsns, by partition.

        The next run searches from there on: what is released meanwhile is noted in the journal, and would be found
        again as open."""
        for partition in self._others[shard].partitions:
            outgoing = partition.outgoing
            outgoing.committed_there = max(outgoing.committed_there, ends.get(partition.index, 0))

    def begin(self, state: ReplayedState, unanswered: Iterable[int]) -> None:
        """Sessions are restored. unanswered: shards that have not said which QoS 2 messages they have"""
        others = self._others
        missing = sorted({index for index, peer in others.items() if not peer.is_known}.union(unanswered))
        if not missing:
            return
        for shard in unanswered:
            others[shard].parts.owner.undecided(state.tags_from)
        partitions = {shard: [p.index for p in others[shard].partitions] for shard in unanswered}
        self._undecided.begin(partitions, state.sessions)
        assert self._since is not None
        seconds = round(self._clock.monotonic - self._since, 3)
        self._events.tell("shard.missing", shards=missing, seconds=seconds)

    def answered(self, shard: int, tags: list[tuple[str, int]]) -> None:
        """A shard that was missing has said which QoS 2 messages of sessions here it has."""
        self._undecided.answered(shard, tags)
        peer = self._others[shard]
        peer.parts.owner.decided(peer.link)
        self._events.tell("shard.found", shard=shard)

    def _found(
        self, restorer: Restorer, partition: RemotePartition, end_lsn: int, next_lsn: int, same_below: int
    ) -> None:
        """The owner of a partition is there at last. end_lsn: where it was taken to end; next_lsn: where it does;
        same_below: as of `OwnerRun.met`

        Cursors beyond were lowered already."""
        index, outgoing = partition.index, partition.outgoing
        outgoing.committed_there = min(outgoing.committed_there, same_below)
        for session, below in restorer.open_ended:
            if below[index] == OPEN_END:
                below[index] = next_lsn
                if session.link is None and not session.is_moving:
                    restorer.journal.recorder.left(session)  # what is published from now on, it has not had
        if same_below >= end_lsn:
            return
        for session in self._sessions.values():
            if session.window is not None:
                session.window.drop_from(index, same_below)
            for reader in session.subscriber.readers():
                if reader.redelivered_below is not None:
                    reader.redelivered_below[index] = min(reader.redelivered_below[index], next_lsn)
        # As at a start: positions beyond the end must not be found again once the log has grown past them. Not in this
        # turn: messages of clients may be on their way to the log, with packet ids that are open.
        self._timers.next_turn(partial(self._write_snapshot, restorer))

    def _write_snapshot(self, restorer: Restorer) -> None:
        restorer.journal.flush(self._clock.now_us)
        restorer.journal.write_snapshot(self._clock.now_us)
