"""Restore sessions, shared subscriptions, retained messages and standing orders at a start, from the journal and the
log behind it.

Runs before the first client. docs/reference/session-journal.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from commitlog import Gap, Partition, Store
from commitlog.chunk import FLAG_RETAIN
from router.effects import Effect
from router.matching.retained import RetainedRecord
from router.readers.shared_group import adjoined
from router.readers.subscription import Subscription
from router.recovery import Recovery
from router.shard import ShardRouter
from rumq.loop.ports import Clock, LifecycleState
from rumq.mqtt.decode import decode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Publish
from rumq.mqtt.packets import Will as WillMessage
from rumq.mqtt.properties import Properties
from rumq.mqtt.topics import parse_share
from rumq.session.flow_control.limits import EXPIRES_NEVER, Limits
from rumq.session.journal import entries as e
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.journal.replayed_state import ReplayedShare, ReplayedState
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session, Shape
from rumq.session.state.session_owner import expiry_seconds_of
from rumq.shards.peers.query_server import log_tags
from rumq.shards.recovery.fit_to_log import shown_below
from rumq.shards.recovery.journal_reader import add_tags
from rumq.shards.recovery.journal_writer import JournalWriter


class Restorer:
    """open_ended: sessions with their `Reader.redelivered_below` in which ends of partitions are known later only"""

    def __init__(
        self, store: Store, router: ShardRouter, registry: Registry, journal: JournalWriter, clock: Clock,
        lifecycle: LifecycleState, limits: Limits,
        restore_standing: Callable[[ReplayedState, bool], None] = lambda state, is_for_later: None,
    ) -> None:  # fmt: skip
        """restore_standing: puts orders in force again, and keeps values; takes `is_for_later` as `restore` does"""
        self._restore_standing = restore_standing
        self._store, self._router, self._registry = store, router, registry
        self.journal, self._clock, self._lifecycle, self._limits = journal, clock, lifecycle, limits
        self.open_ended: list[tuple[Session, list[int]]] = []

    def restore(
        self, state: ReplayedState, carry_out: Callable[[Effect], None], *, are_others: bool = False,
        is_for_later: bool = False,
    ) -> bool:  # fmt: skip
        """Restore everything that an earlier run left; returns whether a subscription asks for publishers' names.

        state: as `replay` gave it, fitted to the log, with what other shards' partitions add
        carry_out: of the router's effects: searches for the starts of replays. raises: OSError
        are_others: other shards say which members they have of groups here
        is_for_later: it is only written down, for a shard that starts later and has turns: that one ends the sessions
        that do not outlive a connection, and publishes their wills"""
        changed = state.changed
        self.journal.snapshot_restored(*state.snapshot)
        self.journal.begin(self._clock.now_us)
        self._restore_standing(state, is_for_later)  # a snapshot has those that are in force
        self._restore_retained(state)
        if state.sessions:
            for partition in self._store.own:
                add_tags(state, log_tags(self._store, partition, state.tags_from[partition.index]))
        self.journal.recorder.last_number = state.last_number
        recovery = Recovery(self._router.subscribing)
        filters = shared_filters(state)
        for key, share in state.shares.items():
            restore_share(recovery, filters, key, share)
        if are_others:
            self._router.sharing.hold()
        sessions = [self._restore_session(recovery, replayed) for replayed in state.sessions.values()]
        for effect in self._router.delivery.drain_effects():
            carry_out(effect)
        for session in sessions:
            if not session.durable and not session.is_moving and not is_for_later:
                self._registry.end(session)  # it ended with the last run
        if changed:
            # Cursors beyond the log's end must not be found again once the log has grown past them.
            self.journal.flush(self._clock.now_us)
            self.journal.write_snapshot(self._clock.now_us)
            write_now(self.journal.partition)
        self._lifecycle.is_restored = True
        return self._limits.publisher_available and any(
            subscription.entry.tells_publisher
            for replayed in state.sessions.values()
            for subscription in replayed.subscriptions.values()
        )

    def write_epoch(self) -> None:
        """Have this run's writer epoch on disk before another shard is told of it.

        It may show records that it does not live to write, and a next one under the same epoch would count as this one:
        what that wrote in their place would not be delivered."""
        self.journal.write_nothing(self._clock.now_us)
        try:
            write_now(self.journal.partition)
        except OSError:
            pass  # the next group of the journal tells of a disk that takes nothing

    def _restore_retained(self, state: ReplayedState) -> None:
        """The last snapshot, then the log from there on."""
        view = self._router.retained
        for topic, message in state.retained.items():
            view.put(RetainedRecord(topic, message.partition, message.lsn, message.base_ts, message.row, message.frame))
        changes = view.changes
        for partition in self._store.own:
            from_lsn = state.retained_from[partition.index]
            for chunk in self._store.chunks_with(partition, FLAG_RETAIN, from_lsn):
                if not isinstance(chunk, Gap):
                    view.update(partition.index, chunk, partition.topic_names)
            # Records that other shards published since this start were applied already, and overwritten just now.
            feed = self._router.feeds[partition.index]
            for chunk in feed.pending:
                if chunk.flags & FLAG_RETAIN and chunk.next_lsn <= feed.visible_lsn:
                    view.update(feed.index, chunk, feed.partition.topic_names)
        self.journal.retained_restored(state.retained_from, as_snapshot=view.changes == changes)

    def _restore_session(self, recovery: Recovery, replayed: ReplayedSession) -> Session:
        session = Session(
            replayed.client_id,
            Shape(5 if replayed.version == 5 else 4, 0, 0),
            personal=False,
            owner=replayed.owner,
        )
        session.version, session.number = replayed.version, replayed.number
        session.expiry_seconds = expiry_seconds_of(replayed.expiry_seconds, replayed.owner, self._limits)
        session.durable = replayed.expiry_seconds > 0
        shares = self._router.sharing.shares
        for asked, each in replayed.subscriptions.items():
            known = shares[asked].key if asked in shares else asked  # one string for all who have it
            session.own_filters().add(known, is_replay=each.kind == "replay")
        session.window = replayed.window
        if replayed.qos2_open:
            session.qos2_open = bytearray(8192)
            for packet_id in replayed.qos2_open:
                session.qos2_open[packet_id >> 3] |= 1 << (packet_id & 7)
        self._restore_subscriptions(recovery, session, replayed)
        away = 0.0 if replayed.attached else max(0.0, (self._clock.now_us - replayed.left_us) / 1e6)
        expires_in = float(session.expiry_seconds)
        if session.expiry_seconds != EXPIRES_NEVER:
            expires_in = max(0.0, expires_in - away)
        will_in = None
        if replayed.will is not None:
            session.will = will_of(replayed.will)
            session.author = replayed.will.author
            will_in = max(0.0, min(replayed.will.delay_seconds, session.expiry_seconds) - away)
        if replayed.moving_seconds:
            # By this node's clock alone: the connection is on its way since now.
            session.is_moving = True
            expires_in = max(expires_in, float(replayed.moving_seconds))
            will_in = None if will_in is None else max(will_in, float(replayed.moving_seconds))
        recorder = self.journal.recorder
        recorder.sessions[session.number] = session
        self._registry.restore(session, expires_in=expires_in, will_in=will_in, now=self._clock.monotonic)
        if replayed.qos2_changed:
            recorder.qos2_changed[session.number] = session
        if replayed.attached:
            recorder.left(session)
        return session

    def _restore_subscriptions(self, recovery: Recovery, session: Session, replayed: ReplayedSession) -> None:
        next_lsns = [p.next_lsn for p in self._store.partitions]
        # Of a client that was connected it is not known how much below the end it was sent.
        shown = shown_below(self._store.partitions, {})
        redelivered_below = shown if replayed.attached else (replayed.redelivered_below or None)
        if redelivered_below is not None and e.OPEN_END in redelivered_below:
            self.open_ended.append((session, redelivered_below))
        subscriber = session.own_subscriber() if replayed.subscriptions else session.subscriber
        mains: dict[str, Subscription] = {}
        main_number = 0
        for asked, each in replayed.subscriptions.items():
            entry = each.entry
            wanted = Subscription(
                entry.topic_filter,
                entry.qos,
                entry.no_local,
                entry.retain_as_published,
                entry.identifier,
                tells_publisher=entry.tells_publisher and self._limits.publisher_available,
                tells_end=entry.tells_end,
                tells_place=entry.tells_place,
            )
            cursors = replayed.cursors.get(each.reader, next_lsns)
            if each.kind == "main":
                mains[asked] = wanted
                main_number = each.reader
            elif each.kind == "share":
                recovery.member(subscriber, each.reader, asked, wanted, redelivered_below)
            else:
                is_replay = each.kind == "replay"
                reader = recovery.reader(
                    subscriber, each.reader, [wanted], cursors, redelivered_below, committed_only=is_replay
                )
                subscriber.add_reader(asked, reader, is_replay=is_replay)
                if (start := replayed.starts.get(each.reader)) is not None:
                    recovery.find_start(reader, start)
        if mains:
            cursors = replayed.cursors.get(main_number, next_lsns)
            recovery.main(subscriber, main_number, mains, cursors, redelivered_below)


def shared_filters(state: ReplayedState) -> dict[str, str]:
    """Of shared subscriptions with members here the plain filter, by the subscription as it was written."""
    subscriptions = (each for session in state.sessions.values() for each in session.subscriptions.values())
    return {each.entry.asked: each.entry.topic_filter for each in subscriptions if each.kind == "share"}


def restore_share(recovery: Recovery, filters: Mapping[str, str], key: str, share: ReplayedShare) -> None:
    """A shared subscription: what its members were sent stays theirs, everything else from its cursors on is still to
    be assigned. filters: `shared_filters`"""
    topic_filter = filters.get(key)
    if topic_filter is None:
        parts = parse_share(key)  # its members are in other shards
        if parts is None:
            return
        topic_filter = parts[1]
    cursors, returned = list(share.cursors), list(share.returned)
    for index, first in enumerate(share.cursors):
        at = first
        for lsn in sorted(lsn for where, lsn in share.assigned if where == index and lsn >= first):
            if at < lsn:
                returned.append((index, at, lsn))
            at = lsn + 1
        cursors[index] = at
    recovery.share(key, topic_filter, cursors, returned, lambda: had_by_members(share))


def had_by_members(share: ReplayedShare) -> list[tuple[int, int, int]]:
    """(partition, first lsn, next lsn) of what members here were sent and have not given back: its home, another shard,
    may not have written down yet that they have it. cost: sorts both"""
    back = adjoined(share.returned)
    had: list[tuple[int, int, int]] = []
    at = 0
    for where, lsn in sorted(share.assigned):
        while at < len(back) and (back[at][0], back[at][2]) <= (where, lsn):
            at += 1
        if at < len(back) and back[at][0] == where and back[at][1] <= lsn:
            continue
        if had and had[-1][0] == where and had[-1][2] == lsn:
            had[-1] = (where, had[-1][1], lsn + 1)
        else:
            had.append((where, lsn, lsn + 1))
    return had


def will_of(entry: e.WillEntry) -> WillMessage:
    found = frame_at(entry.frame, 0, len(entry.frame))
    assert found is not None
    packet = decode(entry.frame[0], entry.frame[found[0] :], 5)
    assert isinstance(packet, Publish)
    properties: Properties = {**packet.properties}
    if entry.delay_seconds:
        properties["will_delay_interval"] = entry.delay_seconds
    return WillMessage(packet.topic, packet.payload, packet.qos, packet.retain, properties)


def write_now(partition: Partition) -> None:
    """Write what is pending, on this thread. raises: OSError"""
    group = partition.take_group()
    if group is not None:
        group.run()
        failure = partition.complete(group)
        if failure is not None and partition.offline is not None:
            raise OSError(str(failure))
