"""At a start: sessions, shares and retained messages as the journal and the log say they stood.

The journal is read once, from its first record; the log from where the journal's last checkpoint ends. Runs before the
first client. docs/session-journal.md."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from commitlog.chunk import FLAG_QOS, FLAG_RETAIN
from commitlog.row_layout import FRAME_WORD, PAYLOAD_WORD, ROW_WORDS
from router.recovery import Recovery
from router.retained import Retained
from router.subscription import Subscription
from rumq.mqtt.decode import decode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Publish
from rumq.mqtt.packets import Will as WillMessage
from rumq.mqtt.properties import Properties
from rumq.mqtt.topics import parse_share
from rumq.session.flow_control.limits import EXPIRES_NEVER
from rumq.session.journal import entries as e
from rumq.session.journal.replayed_session import ReplayedSession
from rumq.session.journal.replayed_state import ReplayedShare, ReplayedState
from rumq.session.state.session import Session, Shape
from rumq.shards.bus.query_server import tags_in

if TYPE_CHECKING:
    from rumq.shards.turn.turn import Driver


def restore(driver: Driver, replayed: ReplayedState) -> None:
    """Take up everything that an earlier run left: what its journal says, and the log behind it. raises: OSError

    replayed: as `read_journal` returned it, adapted (`adapt_to_log`), with the tags of other shards' partitions"""
    keeping = driver.keeping
    changed = replayed.changed
    keeping.begin(driver.now_us)
    restore_retained(driver, replayed)
    restore_tags(driver, replayed)
    driver.journal.last_number = replayed.last_number
    restoring = Recovery(driver.shard.subscribing)
    for asked, share in replayed.shares.items():
        restore_share(restoring, replayed, asked, share)
    over = [restore_session(driver, restoring, saved) for saved in replayed.sessions.values()]
    driver.carrying.carry_out_restored()
    for session in over:
        if session is not None:
            driver.registry.end(session)
    if changed:
        # Cursors beyond the log's end must not be found again once the log has grown past them.
        keeping.flush(driver.now_us)
        keeping.snapshot_now(driver.now_us)
        write_now(keeping.partition)
    driver.is_restored = True


def read_journal(driver: Driver) -> ReplayedState:
    """What the driver's journal says. raises: OSError"""
    return replay_journal(driver.store, driver.keeping.partition, driver.tell)


def replay_journal(store: Any, journal: Any, tell: Callable[..., None]) -> ReplayedState:
    """What a journal says, read from its first record on. raises: OSError"""
    replayed = ReplayedState()
    for chunk in store.chunks_with(journal, 0):
        if not hasattr(chunk, "rows"):
            tell(
                "log.gap",
                stream="_state",
                partition=journal.number,
                first_lsn=chunk.base_lsn,
                next_lsn=chunk.next_lsn,
            )
            continue
        starts = [
            *struct.unpack(f"<{chunk.count * ROW_WORDS}I", chunk.rows)[FRAME_WORD::ROW_WORDS],
            len(chunk.frames),
        ]
        payloads = struct.unpack(f"<{chunk.count * ROW_WORDS}I", chunk.rows)[PAYLOAD_WORD::ROW_WORDS]
        for row in range(chunk.count):
            with memoryview(chunk.frames)[starts[row] + payloads[row] : starts[row + 1]] as record:
                replayed.apply(e.decode_entries(record))
    return replayed


def adapt_to_log(driver: Driver, replayed: ReplayedState, ends: dict[int, int] | None = None) -> None:
    """Adapt the replayed state to the partitions; call it once the other shards have been met.

    ends: the next lsn of partitions at the start of this run. Records appended since may reuse lsns at or above
    `ends`; journal positions there are stale"""
    found = ends or {}
    next_lsns = [found.get(p.index, p.next_lsn) for p in driver.store.partitions]
    replayed.changed |= adapt(replayed, driver.keeping.layout(), next_lsns)
    for partition in driver.store.partitions:
        if partition.is_volatile:
            restart_partition(replayed, partition.index, partition.next_lsn)


def apply_tags(replayed: ReplayedState, tags: list[tuple[str, int]]) -> None:
    """Inbound QoS 2 messages, (client id, packet id), that another shard's partitions have of our sessions."""
    by_client: dict[str, list[ReplayedSession]] = {}
    for saved in replayed.sessions.values():
        by_client.setdefault(saved.client_id, []).append(saved)
    for client_id, packet_id in tags:
        replayed.apply_tag(by_client, client_id, packet_id)


def adapt(replayed: ReplayedState, layout: tuple[str, ...], next_lsns: list[int]) -> bool:
    """Adapt the replayed state to the log as it is now; returns whether anything changed.

    A log of durability `process` may have lost its end, and the configuration may have other partitions."""
    changed = False
    if replayed.layout != layout:
        changed = bool(replayed.layout)
        replayed.remap(layout, next_lsns)
    for saved in replayed.sessions.values():
        for cursors in [*saved.cursors.values(), saved.redelivered_below]:
            changed |= lower(cursors, next_lsns)
        if saved.window is not None:
            for index, next_lsn in enumerate(next_lsns):
                changed |= saved.window.drop_from(index, next_lsn) > 0
    for share in replayed.shares.values():
        changed |= lower(share.cursors, next_lsns)
        share.returned = [(p, a, min(b, next_lsns[p])) for p, a, b in share.returned if a < next_lsns[p]]
        share.assigned = {(p, lsn) for p, lsn in share.assigned if lsn < next_lsns[p]}
    for vector in (replayed.retained_from, replayed.tags_from):
        lower(vector, next_lsns)
        vector.extend([0] * (len(next_lsns) - len(vector)))
    for topic, message in list(replayed.retained.items()):
        if message.lsn >= next_lsns[message.partition]:
            # It was shown and never written: what the topic had before it is to be found in the log again.
            del replayed.retained[topic]
            replayed.retained_from[message.partition] = 0
            changed = True
    return changed


def restart_partition(replayed: ReplayedState, index: int, next_lsn: int) -> None:
    """Have everybody stand at the end of a partition that did not outlive the last run."""
    for saved in replayed.sessions.values():
        for cursors in [*saved.cursors.values(), saved.redelivered_below]:
            if cursors:
                cursors[index] = next_lsn
    for share in replayed.shares.values():
        share.cursors[index] = next_lsn
        share.returned = [each for each in share.returned if each[0] != index]
        share.assigned = {each for each in share.assigned if each[0] != index}


def lower(cursors: list[int], next_lsns: list[int]) -> bool:
    changed = False
    for index, (at, next_lsn) in enumerate(zip(cursors, next_lsns, strict=False)):
        if at > next_lsn:
            cursors[index] = next_lsn
            changed = True
    return changed


def restore_retained(driver: Driver, replayed: ReplayedState) -> None:
    """The last snapshot, then the log from there on."""
    view = driver.shard.retained
    for topic, message in replayed.retained.items():
        view.put(Retained(topic, message.partition, message.lsn, message.base_ts, message.row, message.frame))
    changes = view.changes
    for partition in driver.store.own:
        from_lsn = replayed.retained_from[partition.index]
        for chunk in driver.store.chunks_with(partition, FLAG_RETAIN, from_lsn):
            if hasattr(chunk, "rows"):
                view.take(partition.index, chunk, partition.topic_names)
        # What other shards have published since this one is there was seen already, and overwritten just now.
        feed = driver.shard.feeds[partition.index]
        for chunk in feed.pending:
            if chunk.flags & FLAG_RETAIN and chunk.next_lsn <= feed.live_mark:
                view.take(feed.index, chunk, feed.partition.topic_names)
    driver.keeping.retained_known(replayed.retained_from, as_snapshot=view.changes == changes)


def restore_tags(driver: Driver, replayed: ReplayedState) -> None:
    """Inbound QoS 2 messages that came after the journal's last checkpoint."""
    if not replayed.sessions:
        return
    for partition in driver.store.own:
        from_lsn = replayed.tags_from[partition.index]
        for chunk in driver.store.chunks_with(partition, FLAG_QOS, from_lsn):
            apply_tags(replayed, tags_in(partition, chunk, from_lsn))


def restore_share(restoring: Recovery, replayed: ReplayedState, asked: str, share: ReplayedShare) -> None:
    """What members were sent is theirs; everything else from the share's cursors on is still to be handed out."""
    topic_filter = next(
        (
            s.entry.topic_filter
            for saved in replayed.sessions.values()
            for s in saved.subscriptions.values()
            if s.kind == "share" and s.entry.asked == asked
        ),
        None,
    )
    if topic_filter is None:
        parts = parse_share(asked)  # its members are in other shards
        if parts is None:
            return
        topic_filter = parts[1]
    cursors, returned = list(share.cursors), list(share.returned)
    for index, first in enumerate(share.cursors):
        handed = sorted(lsn for where, lsn in share.assigned if where == index and lsn >= first)
        at = first
        for lsn in handed:
            if at < lsn:
                returned.append((index, at, lsn))
            at = lsn + 1
        cursors[index] = at
    restoring.share(asked, topic_filter, cursors, returned)


def restore_session(driver: Driver, restoring: Recovery, saved: ReplayedSession) -> Session | None:
    """Build a session; returned if it ended with the broker's last run."""
    next_lsns = [p.next_lsn for p in driver.store.partitions]
    shape = Shape(5 if saved.version == 5 else 4, 0, 0)
    session = Session(saved.client_id, shape, personal=False, owner=saved.owner)
    session.version, session.number = saved.version, saved.number
    session.expiry_seconds = min(saved.expiry_seconds, driver.limits.session_expiry_seconds_max)
    session.durable = saved.expiry_seconds > 0
    for asked, each in saved.subscriptions.items():
        session.asked.add(asked, is_replay=each.kind == "replay")
    session.window = saved.window
    if saved.qos2_open:
        session.qos2_open = bytearray(8192)
        for packet_id in saved.qos2_open:
            session.qos2_open[packet_id >> 3] |= 1 << (packet_id & 7)
    redelivered_below = list(next_lsns) if saved.attached else (saved.redelivered_below or None)
    restore_subscriptions(driver, restoring, session, saved, next_lsns, redelivered_below)
    away = 0.0 if saved.attached else max(0.0, (driver.now_us - saved.left_us) / 1e6)
    expires_in = float(session.expiry_seconds)
    if session.expiry_seconds != EXPIRES_NEVER:
        expires_in = max(0.0, expires_in - away)
    will_in = None
    if saved.will is not None:
        session.will = will_of(saved.will)
        session.author = saved.will.author
        will_in = max(0.0, min(saved.will.delay_seconds, session.expiry_seconds) - away)
    driver.journal.sessions[session.number] = session
    driver.registry.restore(session, expires_in=expires_in, will_in=will_in, now=driver.monotonic)
    if saved.qos2_changed:
        driver.journal.qos2_changed[session.number] = session
    if saved.attached:
        driver.journal.left(session)
    return None if session.durable else session


def restore_subscriptions(
    driver: Driver,
    restoring: Recovery,
    session: Session,
    saved: ReplayedSession,
    next_lsns: list[int],
    redelivered_below: list[int] | None,
) -> None:
    subscriber = session.subscriber
    mains: dict[str, Subscription] = {}
    main_number = 0
    for asked, each in saved.subscriptions.items():
        entry = each.entry
        wanted = Subscription(
            entry.topic_filter,
            entry.qos,
            entry.no_local,
            entry.retain_as_published,
            entry.identifier,
            tells_publisher=entry.tells_publisher and driver.limits.publisher_available,
        )
        driver.peers.wants_publishers |= wanted.tells_publisher
        cursors = saved.cursors.get(each.reader, next_lsns)
        if each.kind == "main":
            mains[asked] = wanted
            main_number = each.reader
        elif each.kind == "share":
            restoring.member(subscriber, each.reader, asked, wanted, redelivered_below)
        else:
            reader = restoring.reader(
                subscriber, each.reader, [wanted], cursors, redelivered_below, located=each.kind == "replay"
            )
            (subscriber.replays if each.kind == "replay" else subscriber.late)[asked] = reader
            if (start := saved.starts.get(each.reader)) is not None:
                restoring.look_for(reader, start)
    if mains:
        restoring.main(
            subscriber, main_number, mains, saved.cursors.get(main_number, next_lsns), redelivered_below
        )


def will_of(entry: e.Will) -> WillMessage:
    found = frame_at(entry.frame, 0, len(entry.frame))
    assert found is not None
    packet = decode(entry.frame[0], entry.frame[found[0] :], 5)
    assert isinstance(packet, Publish)
    properties: Properties = {**packet.properties}
    if entry.delay_seconds:
        properties["will_delay_interval"] = entry.delay_seconds
    return WillMessage(packet.topic, packet.payload, packet.qos, packet.retain, properties)


def write_now(partition: Any) -> None:
    """Write what waits, here and now. raises: OSError"""
    group = partition.take_group()
    if group is not None:
        group.run()
        failure = partition.complete(group)
        if failure is not None and partition.offline is not None:
            raise OSError(str(failure))
