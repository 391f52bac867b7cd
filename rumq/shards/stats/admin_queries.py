"""What a running broker can be asked: numbers about its clients, its log, and what was not delivered.

Answers are plain data for JSON. Reads the driver's state on its own thread; only the two actions change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from rumq.mqtt.reasons import Reason
from rumq.session.state.session_owner import client_id_of
from rumq.shards.stats.admin_listings import clients, topics
from rumq.shards.turn.turn import Driver

QUESTIONS = ("status", "clients", "topics", "ledger", "disconnect", "drop")


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
        return partial(clients, driver, question)
    if question.get("ask") == "topics":
        return partial(topics, driver, question)
    if question.get("ask") in ("disconnect", "drop"):
        return act(driver, client or "", drops=question["ask"] == "drop")
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
                    for r in driver.drop_counters.rows(None, topic)
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


def act(driver: Driver, client: str, *, drops: bool) -> Answer:
    """Disconnect a client (0x98), of whatever owner; drops: and forget its session. How many there were."""
    found = [s for s in driver.registry.sessions.values() if s.client_id == client]
    disconnected = 0
    for session in found:
        if session.link is not None:
            disconnected += 1
            session.link.dismiss(Reason.ADMINISTRATIVE_ACTION, "the operator ended this connection")
        if drops:
            driver.registry.end(session)
    if found:
        driver.tell("session.dropped" if drops else "client.dismissed", client_id=client, sessions=len(found))
    return {"disconnected": disconnected, "dropped": len(found) if drops else 0}


def of_the_broker(driver: Driver) -> Answer:
    """What the first shard says for all."""
    disk, space = driver.disk, driver.disk.space
    seconds = disk.seconds_to_full()
    return {
        **driver.about,
        "uptime_seconds": round(driver.monotonic - driver.started, 1),
        "disk": {
            "free_bytes": space.free_bytes if space is not None else None,
            "total_bytes": space.total_bytes if space is not None else None,
            "free_wanted": disk.wanted if space is not None and disk.yields else disk.reserve,
            "bytes_per_second": round(disk.bytes_per_second),
            "full_in_seconds": None if seconds is None else round(seconds),
            "then": "the oldest segments go" if disk.yields else "publishers are refused",
        },
    }


def memory_bytes() -> int:
    """Of this process, without the files that it has mapped; 0 where nobody says."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon:"))
    except (OSError, StopIteration):
        return 0


def status(driver: Driver) -> dict[str, Any]:
    """The whole broker in a few numbers."""
    sessions = driver.registry.sessions.values()
    return {
        **(of_the_broker(driver) if driver.index == 0 else {}),
        "memory_bytes": memory_bytes(),
        "log_bytes": sum(p.segments.bytes for p in driver.store.own),
        "trimmed_for_space_records": driver.disk.records,
        "disk_is_full": int(driver.refusing.is_full),
        "connected": sum(s.link is not None for s in sessions),
        "sessions": len(sessions),
        "retained": len(driver.shard.retained),
        "undelivered": driver.drop_counters.total(),
        "handed_over": driver.shard_totals.handed_over,
        "taken_over": driver.shard_totals.taken_over,
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
