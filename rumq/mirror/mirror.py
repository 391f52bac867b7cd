"""A mirror: a thread for each partition of the source, and one that looks for new partitions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from rumq.errors import RumqError
from rumq.flight.client import LogClient
from rumq.flight.copies_client import CopiesClient
from rumq.mirror.partition_mirror import MirrorRules, PartitionMirror
from rumq.mirror.position import PositionFile
from rumq.table.flight_location import FlightLocation

RETRY_SECONDS = (0.5, 1.0, 5.0, 15.0)
DISCOVER_SECONDS = 5.0
Event = Callable[..., None]


def client_of(location: FlightLocation) -> LogClient | CopiesClient:
    return CopiesClient(location) if location.copies else LogClient(location)


class Mirror:
    """stream: of the source; folder: of the positions; idle_seconds: between looks for new records"""

    def __init__(
        self, rules: MirrorRules, location: FlightLocation, folder: Path, event: Event, *, stream: str = "main",
        idle_seconds: float = 0.1,
    ) -> None:  # fmt: skip
        self._rules, self._location, self._folder, self._event = rules, location, folder, event
        self._stream, self._idle_seconds = stream, idle_seconds
        self._stopping = threading.Event()
        self._threads: dict[str, threading.Thread] = {}

    def run(self) -> None:
        """Until `stop`, which a crash replaces: what was begun is repeated."""
        client, failed = client_of(self._location), 0
        while not self._stopping.is_set():
            try:
                found = [name for name in client.heads() if name.partition("/")[0] == self._stream]
                failed = 0
            except (RumqError, OSError) as fault:
                self._stopping.wait(self._tell_failure("", fault, failed))
                failed += 1
                continue
            for name in found:
                if name not in self._threads:
                    thread = threading.Thread(
                        target=self._follow, args=(name,), name=f"rumq-mirror-{name}", daemon=True
                    )
                    self._threads[name] = thread
                    thread.start()
            self._stopping.wait(DISCOVER_SECONDS)

    def stop(self) -> None:
        self._stopping.set()

    def _follow(self, partition: str) -> None:
        client, failed = client_of(self._location), 0
        mirror: PartitionMirror | None = None
        while not self._stopping.is_set():
            try:
                if mirror is None:
                    file = PositionFile(self._folder, partition)
                    mirror = PartitionMirror(self._rules, partition, client, file, event=self._event)
                copied = mirror.step()
                failed = 0
            except (RumqError, OSError) as fault:
                self._stopping.wait(self._tell_failure(partition, fault, failed))
                failed += 1
                continue
            if copied:
                self._event(
                    "mirror.copied", name=self._rules.name, partition=partition, records=copied,
                    next_lsn=mirror.next_lsn,
                )  # fmt: skip
            else:
                self._stopping.wait(self._idle_seconds)

    def _tell_failure(self, partition: str, fault: Exception, failed: int) -> float:
        """Returns the seconds to wait."""
        seconds = RETRY_SECONDS[min(failed, len(RETRY_SECONDS) - 1)]
        self._event("mirror.failed", name=self._rules.name, partition=partition, why=str(fault), retry_seconds=seconds)
        return seconds
