"""One session in detail: subscriptions with their readers' places, messages in flight, limits, losses. And the
subscribers of a topic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import islice

from commitlog import NotInMemory, OffsetTrimmed
from commitlog.chunk import Chunk
from commitlog.row_layout import ROW_BYTES
from router.matching.feed import Feed
from router.readers.reader import Reader
from router.readers.slots import partition_of
from router.readers.subscriber import Subscriber
from router.readers.subscription import Subscription
from rumq.admin import requests as q
from rumq.admin import rows as r
from rumq.admin.operations import UNKNOWN
from rumq.loop.ports import Clock, Timers
from rumq.mqtt.packets import Will
from rumq.mqtt.topics import matches
from rumq.session.connection.packet_order import State
from rumq.session.flow_control.rate_limits import Bucket
from rumq.session.protocol.connected import Connected
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.registry import Registry
from rumq.session.state.session import Session, SessionConnection
from rumq.session.state.session_owner import client_id_of
from rumq.shards.admin.listings.listings import Answer, ClientListing, Done
from rumq.shards.stats.session_lag import SessionLag

ROWS_MAX = 200
SESSIONS_A_TURN = 128
NEVER_SECONDS = 0xFFFF_FFFF  # Session Expiry Interval of a session that does not expire. MQTT 5.0, 3.1.2.11.2
WAITS_FOR = {1: "PUBACK", 2: "PUBREC", 3: "PUBCOMP"}


class ClientDetailQuery:
    def __init__(
        self, registry: Registry, feeds: Sequence[Feed], lag: SessionLag, drop_counters: DropCounters, clock: Clock,
        listing: ClientListing,
    ) -> None:  # fmt: skip
        self._registry, self._feeds, self._lag = registry, feeds, lag
        self._drop_counters, self._clock, self._listing = drop_counters, clock, listing

    def show(self, asked: q.OneClient) -> Answer:
        """Of several owners' sessions with this client id the first that is connected."""
        session = first_session_of(self._registry, asked.client)
        if session is None:
            return {"found": False, UNKNOWN: True}
        link = session.link
        clock = self._clock
        buckets = link.buckets if isinstance(link, Connected) else ()
        waiting = session.window.waiting() if session.window is not None else []
        return {
            "found": True,
            "client": self._listing.row(session),
            "expires_seconds": None if session.expires_at is None else round(session.expires_at - clock.monotonic, 1),
            "expiry_interval_seconds": None if session.expiry_seconds == NEVER_SECONDS else session.expiry_seconds,
            "security": security_of(link),
            "certificate": subject_of(link),
            "will": [] if session.will is None else [will_row(session.will)],
            "paused": isinstance(link, Connected) and link.state is State.PAUSED,
            "subscriptions": list(islice(self._subscriptions(session), ROWS_MAX)),
            "in_flight": [self._in_flight_row(*each) for each in waiting[:ROWS_MAX]],
            "limits": [bucket_row(bucket, clock.monotonic) for bucket in buckets],
            "undelivered": [
                r.UndeliveredRow(
                    reason=row.why,
                    client_id=client_id_of(row.client_id),
                    topic=row.topic,
                    records=row.records,
                )
                for row in self._drop_counters.rows(session.key)[:ROWS_MAX]
            ],
        }

    def _subscriptions(self, session: Session) -> Iterator[r.SubscriptionRow]:
        """Made as they are taken; of readers that many filters share the place is looked up once."""
        subscriber = session.subscriber
        if subscriber.main is not None:
            behind = self._behind(subscriber.main)
            for asked, subscription in subscriber.main_subscriptions.items():
                yield subscription_row(asked, "live", subscription, behind)
        for kind, readers in (("late", subscriber.late), ("replay", subscriber.replays)):
            for asked, reader in readers.items():
                for subscription in reader.group.subscriptions:
                    yield subscription_row(asked, kind, subscription, self._behind(reader))
        for asked, share in subscriber.shares.items():
            member = share.members.get(subscriber)
            for subscription in member.reader.group.subscriptions if member is not None else ():
                yield subscription_row(asked, "shared", subscription, None)

    def _behind(self, reader: Reader) -> int:
        return self._lag.reader_lag(reader)[0]

    def _in_flight_row(self, packet_id: int, state: int, code: int, lsn: int) -> r.InFlightRow:
        index = partition_of(code)
        return r.InFlightRow(
            packet_id=packet_id, waits_for=WAITS_FOR[state], partition=index, lsn=lsn, topic=self._topic_of(index, lsn)
        )

    def _topic_of(self, index: int, lsn: int) -> str | None:
        """Of a record that is in memory; of others the disk is not asked."""
        feeds = self._feeds
        if index >= len(feeds):
            return None
        partition = feeds[index].partition
        try:
            chunks = partition.read(lsn, 1)
        except (NotInMemory, OffsetTrimmed):
            return None
        for chunk in chunks:
            if isinstance(chunk, Chunk) and chunk.base_lsn <= lsn < chunk.next_lsn:
                at = ROW_BYTES * (lsn - chunk.base_lsn)
                topic_id = int.from_bytes(bytes(memoryview(chunk.rows)[at : at + 4]), "little")
                names = partition.topic_names
                return names[topic_id].decode(errors="replace") if topic_id < len(names) else None
        return None


class SubscribersQuery:
    """Sessions with a subscription that a topic matches. Cost: every filter of every session, some sessions a turn"""

    def __init__(self, registry: Registry, timers: Timers) -> None:
        self._registry, self._timers = registry, timers

    def list(self, asked: q.Subscribers, done: Done) -> None:
        left = list(self._registry.sessions.values())
        until = min(asked.offset + asked.limit, q.ROWS_MAX)
        rows: list[r.SubscriberRow] = []
        seen = 0

        def go_on() -> None:
            nonlocal rows, seen
            some = left[-SESSIONS_A_TURN:]
            del left[-SESSIONS_A_TURN:]
            found = [row for session in some if not session.ended for row in matching(session, asked.topic)]
            seen += len(found)
            rows = nsmallest(until, [*rows, *found], key=lambda row: row.client_id)
            if left:
                self._timers.next_turn(go_on)
            else:
                done({"subscribers": rows, "left_out": seen - len(rows)})

        go_on()


def matching(session: Session, topic: str) -> Iterator[r.SubscriberRow]:
    """A row for each subscription that the topic matches; of filters that overlap one each."""
    user = session.owner.user if session.owner is not None else None
    for kind, asked, subscription in subscriptions_in(session.subscriber):
        if matches(subscription.topic_filter, topic):
            yield r.SubscriberRow(
                client_id=session.client_id, user=user, connected=session.link is not None, filter=asked, kind=kind,
                qos=subscription.qos,
            )  # fmt: skip


def subscriptions_in(subscriber: Subscriber) -> Iterator[tuple[str, str, Subscription]]:
    """(kind, filter as written, subscription) of all."""
    for asked, subscription in subscriber.main_subscriptions.items():
        yield "live", asked, subscription
    for kind, readers in (("late", subscriber.late), ("replay", subscriber.replays)):
        for asked, reader in readers.items():
            for subscription in reader.group.subscriptions:
                yield kind, asked, subscription
    for asked, share in subscriber.shares.items():
        member = share.members.get(subscriber)
        for subscription in member.reader.group.subscriptions if member is not None else ():
            yield "shared", asked, subscription


def sessions_of(registry: Registry, client_id: str) -> list[Session]:
    """The sessions with a client id, of whatever owner. Cost: linear in sessions if none has it without an owner"""
    return [session for session in registry.sessions.values() if session.client_id == client_id]


def first_session_of(registry: Registry, client_id: str) -> Session | None:
    """Of several owners' sessions with this client id the first that is connected."""
    found = sessions_of(registry, client_id)
    return next((each for each in found if each.link is not None), found[0] if found else None)


def will_row(will: Will) -> r.WillRow:
    return r.WillRow(
        topic=will.topic, qos=will.qos, retain=will.retain, bytes=len(will.payload),
        delay_seconds=will.properties.get("will_delay_interval", 0),
    )  # fmt: skip


def security_of(link: SessionConnection | None) -> str | None:
    """As `stream_connection` tells it; a connection without layers has none. Of a client that the gateway
    relays the gateway alone knows it."""
    if not isinstance(link, Connected) or link.client.policy.is_gateway:
        return None
    transport = link.transport
    return "" if getattr(transport, "is_plain", False) else getattr(transport, "security", None)


def subject_of(link: SessionConnection | None) -> str | None:
    certificate = link.client.certificate if isinstance(link, Connected) else None
    return certificate.subject if certificate is not None else None


def subscription_row(asked: str, kind: str, subscription: Subscription, behind: int | None) -> r.SubscriptionRow:
    return r.SubscriptionRow(
        filter=asked, kind=kind, qos=subscription.qos, no_local=subscription.no_local,
        identifier=subscription.identifier, behind_records=behind,
    )  # fmt: skip


def bucket_row(bucket: Bucket, now: float) -> r.BucketRow:
    messages, size = bucket.balance(now)
    return r.BucketRow(messages=messages, bytes=size)
