"""What a running broker can be asked: numbers about its clients, its log, and what was not delivered.

Answers are plain data for JSON. Reads the driver's state on its own thread, changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from rumq.session.owner import client_id_of
from rumq.session.session import Session
from rumq.shards.driver import Driver

QUESTIONS = ("status", "clients", "ledger")


class Unknown(ValueError):
    """A question that nobody here can answer."""

    def __str__(self) -> str:
        return f"cannot answer {self.args[0]!r}; ask one of {', '.join(QUESTIONS)}"


Answer = dict[str, Any]


def answer(driver: Driver, question: dict[str, Any]) -> Answer | Callable[[Callable[[Answer], None]], None]:
    """question: {"ask": one of QUESTIONS, "client": id or absent, "topic": name or absent}

    returns: the answer, or what will call back with it"""
    client, topic = question.get("client"), question.get("topic")
    if question.get("ask") == "status":
        return status(driver)
    if question.get("ask") == "clients":
        sessions = driver.registry.sessions.values()
        return {"clients": [of_client(driver, s) for s in sessions if client in (None, s.client_id)]}
    if question.get("ask") == "ledger":
        return partial(ledger, driver, client, topic)
    raise Unknown(question.get("ask"))


def ledger(driver: Driver, client: str | None, topic: str | None, done: Callable[[Answer], None]) -> None:
    """What was not delivered; of one client also what is still to come, which the log is asked for. Calls back once all
    losses up to now are counted."""
    sessions = [s for s in driver.registry.sessions.values() if client is not None and s.client_id == client]
    readers = [reader for session in sessions for reader in session.subscriber.readers()]

    def found(pending: Counter[str]) -> None:
        done(
            {
                "undelivered": [
                    {"reason": r.why, "client_id": name, "topic": r.topic, "records": r.records}
                    for r in driver.ledger.rows(None, topic)
                    if client in (None, name := client_id_of(r.client_id))
                ],
                "pending": [
                    {"client_id": client, "topic": name, "records": records}
                    for name, records in pending.most_common()
                    if topic in (None, name)
                ],
            }
        )

    driver.losses.pending(readers, found)


def status(driver: Driver) -> dict[str, Any]:
    """The whole broker in a few numbers."""
    sessions = driver.registry.sessions.values()
    return {
        "connected": sum(s.link is not None for s in sessions),
        "sessions": len(sessions),
        "retained": len(driver.shard.retained),
        "undelivered": driver.ledger.total(),
        "handed_over": driver.totals.handed_over,
        "taken_over": driver.totals.taken_over,
        "partitions": [
            {
                "stream": p.stream,
                "partition": p.number,
                "durability": p.spec.durability,
                "first_lsn": p.first_lsn,
                "next_lsn": p.next_lsn,
                "committed_lsn": p.committed_lsn,
                "topics": len(p.topic_names),
                "topics_max": p.spec.topics_max,
                "segments": len(p.segments.files),
                "offline": str(p.offline) if p.offline else None,
            }
            for p in driver.store.own
        ],
    }


def of_client(driver: Driver, session: Session) -> dict[str, Any]:
    """One session. behind_records: records of the log that its readers have not looked at yet; in_flight: sent at QoS 1
    or 2 and not yet acknowledged."""
    link = session.link
    published, delivered = session.counts.published, session.counts.delivered
    if link is not None and link.wire is not None and link.flow is not None:
        published += link.wire.published
        delivered += link.flow.delivered
    behind = 0
    for reader in session.subscriber.readers():
        for feed in driver.shard.feeds:
            if not reader.is_live(feed.index):
                behind += max(0, feed.mark(reader.group.wants.located) - reader.cursors[feed.index])
    return {
        "client_id": session.client_id,
        "user": session.owner.user if session.owner is not None else None,
        "mount_point": session.owner.mount if session.owner is not None else None,
        "connected": link is not None,
        "published": published,
        "delivered": delivered,
        "in_flight": session.window.in_flight if session.window is not None else 0,
        "behind_records": behind,
        "undelivered": driver.ledger.of_client(session.key),
        "subscriptions": sorted(session.asked),
    }
