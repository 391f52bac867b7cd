"""Where a session's readers stand, as facts say it. Reads the router's objects, changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rumq.session.journal import entries as f

if TYPE_CHECKING:
    from router.reader import Reader
    from rumq.session.state.session import Session

Marks = list[tuple[int, int]]  # (live, committed) of each partition


def cursors_of(reader: Reader, marks: Marks) -> list[int]:
    """The next lsn of each partition that the reader is to get."""
    committed_only = reader.group.wants.committed_only
    return [
        mark[committed_only] if reader.is_live(index) else reader.cursors[index]
        for index, mark in enumerate(marks)
    ]


def redelivered_below_of(session: Session, marks: Marks) -> list[int]:
    """Below which lsns a reader of the session may get something that it had before a crash; [] for none."""
    for reader in session.subscriber.readers():
        if reader.redelivered_below is not None and any(
            at < below for at, below in zip(cursors_of(reader, marks), reader.redelivered_below, strict=True)
        ):
            return list(reader.redelivered_below)
    return []


def subscribed(session: Session, asked: str, marks: Marks) -> f.Subscribed | None:
    """A subscription and where its reader stands; None when it is gone again."""
    subscriber = session.subscriber
    start = None
    if asked in subscriber.shares:
        share = subscriber.shares[asked]
        reader = share.members[subscriber].reader
        (wanted,) = reader.group.subscriptions
        kind, cursors = "share", cursors_of(share.reader, marks)
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
        reader, cursors = found, cursors_of(found, marks)
    return f.Subscribed(
        session.number, asked, wanted.topic_filter, wanted.qos, wanted.no_local, wanted.retain_as_published,
        wanted.identifier, kind, reader.number, cursors, start, wanted.tells_publisher,
    )  # fmt: skip
