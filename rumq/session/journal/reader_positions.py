"""The positions of a session's readers, as journal entries have them."""

from __future__ import annotations

from router.readers.reader import Reader
from rumq.session.journal import entries as e
from rumq.session.state.session import Session

Watermarks = list[tuple[int, int]]  # (visible, committed) of each partition


def cursors_of(reader: Reader, watermarks: Watermarks) -> list[int]:
    """The next lsn of each partition for the reader."""
    committed_only = reader.group.wants.committed_only
    return [
        at[committed_only] if reader.is_live(index) else reader.cursors[index] for index, at in enumerate(watermarks)
    ]


def redelivered_below_of(session: Session, watermarks: Watermarks) -> list[int]:
    """As of `entries.Left`: the bound of the first reader that has not passed its own; [] for none."""
    for reader in session.subscriber.readers():
        below = reader.redelivered_below
        if below is not None and any(
            at < bound for at, bound in zip(cursors_of(reader, watermarks), below, strict=True)
        ):
            return list(below)
    return []


def subscribed_entry(session: Session, asked: str, watermarks: Watermarks) -> e.Subscribed | None:
    """A subscription with the position of its reader; None when the subscription is gone again."""
    subscriber = session.subscriber
    start = None
    if asked in subscriber.shares:
        share = subscriber.shares[asked]
        reader = share.members[subscriber].reader
        (wanted,) = reader.group.subscriptions
        kind, cursors = "share", cursors_of(share.reader, watermarks)
    else:
        if asked in subscriber.replays:
            kind, found = "replay", subscriber.replays[asked]
            start = found.start
            (wanted,) = found.group.subscriptions
        elif asked in subscriber.late:
            kind, found = "late", subscriber.late[asked]
            (wanted,) = found.group.subscriptions
        elif asked in subscriber.main_subscriptions and subscriber.main is not None:
            kind, found = "main", subscriber.main
            wanted = subscriber.main_subscriptions[asked]
        else:
            return None
        reader, cursors = found, cursors_of(found, watermarks)
    return e.Subscribed(
        session.number, asked, wanted.topic_filter, wanted.qos, wanted.no_local, wanted.retain_as_published,
        wanted.identifier, kind, reader.number, cursors, start, wanted.tells_publisher,
        wanted.tells_end, wanted.tells_place,
    )  # fmt: skip
