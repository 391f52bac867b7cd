"""The lag of streaming queries behind the log, reported after each batch: as a retained message, or to a callback.

docs/guides/spark.md, "Lag". A query neither waits for a report nor fails because of one."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import trio
from pyspark.sql.streaming.listener import StreamingQueryListener

from rumq.client import Outgoing
from rumq.errors import ClientError
from rumq.sink.broker_check import connected
from rumq.sink.sink_options import parse_sink_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

RETRY_SECONDS = 1.0
log = logging.getLogger("rumq.spark")


@dataclass(frozen=True)
class Lag:
    """The lag of one query after a batch.

    query: its name, or its id without a name; partitions: name -> records from the query's offset to the end of the
    log; behind_records: their sum; time: start of the batch, ISO 8601; running: false once the query has ended; why:
    the reason then, empty if it was stopped or finished
    """

    query: str
    id: str
    batch: int
    time: str
    behind_records: int
    partitions: dict[str, int]
    running: bool = True
    why: str = ""

    @property
    def topic(self) -> str:
        """A name, escaped as a topic level."""
        return f"rumq/spark/{quote(self.query, safe=' ')}/lag"


LagCallback = Callable[[Lag], object]


def lag_of(progress: StreamingQueryProgress) -> Lag | None:
    """The lag from a progress report of Spark; None if the query has no source of format rumq."""
    partitions: dict[str, int] = {}
    found = False
    for source in progress.sources:
        done, log_end = maybe_lsns(source.endOffset), maybe_lsns(source.latestOffset)
        if done is None or log_end is None:
            continue
        found = True
        for name, lsn in log_end.items():
            # Two sources of a query may read one partition: the slower one counts.
            partitions[name] = max(partitions.get(name, 0), lsn - done.get(name, 0), 0)
    if not found:
        return None
    return Lag(
        progress.name or str(progress.id), str(progress.id), progress.batchId, progress.timestamp,
        sum(partitions.values()), dict(sorted(partitions.items())),
    )  # fmt: skip


def maybe_lsns(text: str | None) -> dict[str, int] | None:
    """Offsets in the form of our source; None: of another source."""
    try:
        offsets = json.loads(text or "")
        return {str(name): int(lsn) for name, lsn in offsets["lsn"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


class LagListener(StreamingQueryListener):
    """Reports the lag of each query of a session that reads format rumq."""

    def __init__(self, tell: LagCallback) -> None:
        self._tell = tell
        self._last: dict[str, Lag] = {}  # of queries that run, by id of the run

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """No report: there is no progress yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        found = lag_of(event.progress)
        if found is not None:
            self._last[str(event.progress.runId)] = found
            self._say(found)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """No report: the lag is unchanged."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        last = self._last.pop(str(event.runId), None)
        if last is not None:
            why = (event.exception or "").strip().partition("\n")[0]
            self._say(Lag(**{**asdict(last), "running": False, "why": why}))

    def _say(self, found: Lag) -> None:
        try:
            self._tell(found)
        except Exception:
            log.exception(
                "the lag of %s is not reported", found.query
            )  # of the user's callback: it must not end the listener


class LagPublisher:
    """Publishes lags over one connection, in a thread; without a connection it keeps the newest of each topic."""

    def __init__(self, broker: str, **options: str) -> None:
        """raises: BadOption, UnknownOption. options: as for publishing: username, passwordFile, tlsCa"""
        self._options = parse_sink_options({"broker": broker, **options})
        self._waiting: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._broken = False
        threading.Thread(target=self._run, name="rumq-lag", daemon=True).start()

    def __call__(self, found: Lag) -> None:
        with self._changed:
            self._waiting[found.topic] = json.dumps(asdict(found)).encode()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            try:
                trio.run(self._connected)
            except ClientError as fault:
                if not self._broken:  # once, not every second
                    log.warning("lag is not published: %s", fault)
                self._broken = True
            except Exception:
                log.exception("lag is not published")
            trio.run(trio.sleep, RETRY_SECONDS)

    async def _connected(self) -> None:
        """Publish until the connection breaks. Unacknowledged messages are kept for the next one."""
        taken: dict[str, bytes] = {}
        try:
            async with connected(self._options) as client:
                self._broken = False
                while True:
                    taken = await trio.to_thread.run_sync(self._take, abandon_on_cancel=True)
                    await client.publish_batch([Outgoing(t, p, 1, True) for t, p in taken.items()])
                    taken = {}
        finally:
            with self._changed:
                self._waiting = taken | self._waiting

    def _take(self) -> dict[str, bytes]:
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            taken, self._waiting = self._waiting, {}
            return taken


def report_lag(spark: SparkSession, to: str | LagCallback) -> LagListener:
    """Report the lag of every query of the session until `spark.streams.removeListener(...)`.

    to: mqtt://host:1883, to publish it to rumq/spark/NAME/lag, or a function that is called with each `Lag`
    """
    listener = LagListener(LagPublisher(to) if isinstance(to, str) else to)
    spark.streams.addListener(listener)
    return listener
