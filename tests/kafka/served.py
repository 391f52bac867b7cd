"""A Kafka server in this process, on a log that no broker writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trio

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.auth.credentials.authenticator import OPEN, Authenticator
from rumq.auth.rules import RuleSet
from rumq.kafka.access.logins import KafkaLogins
from rumq.kafka.access.shares import KafkaShares
from rumq.kafka.answers.connected_client import FetchBounds, KafkaDoor
from rumq.kafka.connection import ConnectionBounds
from rumq.kafka.groups.commit_file import CommitFile
from rumq.kafka.groups.coordinator import GroupBounds
from rumq.kafka.groups.group_service import GroupService
from rumq.kafka.log.served_log import KafkaLog
from rumq.kafka.server import KafkaServer, listen
from rumq.kafka.topics.topic_catalog import TopicCatalog, TopicSource

SECONDS = 30.0
SOURCES = [
    TopicSource("main", "main", ("#",)),
    TopicSource("two", "main", ("plant/2/#",), "plant/2/#"),
    TopicSource("none", "main", ("nowhere/#",), "nowhere/#"),
]


class Served:
    """server: runs on a thread of its own; port: where; events: (name, fields) that it told"""

    def __init__(self, server: KafkaServer, events: list[tuple[str, dict[str, Any]]]) -> None:
        self.server, self.events, self.port = server, events, 0
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope = trio.CancelScope()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._run,), daemon=True)
        self._thread.start()
        assert self._ready.wait(SECONDS)

    async def _run(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.server.door.log.run)
                if self.server.door.groups is not None:
                    nursery.start_soon(self.server.door.groups.run)
                await nursery.start(listen, self.server, listeners)
                self._ready.set()

    def told(self, name: str) -> list[dict[str, Any]]:
        return [fields for event, fields in self.events if event == name]

    def call(self, function: Any, *arguments: Any) -> Any:
        """On its loop."""
        assert self._token is not None
        return trio.from_thread.run_sync(function, *arguments, trio_token=self._token)

    def on_loop(self, function: Any, *arguments: Any) -> Any:
        """What may wait."""
        assert self._token is not None
        return trio.from_thread.run(function, *arguments, trio_token=self._token)

    def stop(self) -> None:
        self.call(self._scope.cancel)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        self.server.door.log.close()


@contextmanager
def served(
    root: str, authenticator: Authenticator = OPEN, rules: RuleSet | None = None, *, connections_max: int = 100,
    answer_bytes_max: int = 1 << 23, waiting_bytes_max: int = 1 << 26, request_bytes_max: int = 1 << 20,
    idle_seconds_max: float = 60.0, tls: Any = None, now_us: Any = None, committed: Any = None,
    groups: GroupBounds | None = None,
) -> Iterator[Served]:  # fmt: skip
    events: list[tuple[str, dict[str, Any]]] = []
    clock = now_us or (lambda: time.time_ns() // 1000)
    logins = KafkaLogins(
        authenticator, rules, now=time.monotonic, now_us=clock, wait=lambda _: None, guess_seconds_max=0.0
    )
    door = KafkaDoor(
        KafkaLog(root, committed), TopicCatalog(SOURCES, b"log"), logins,
        FetchBounds(answer_bytes_max, KafkaShares(waiting_bytes_max)), cluster_id="rumq-test", advertised=None,
        clears=False, retention=lambda _: {"cleanup.policy": "delete"},
        event=lambda name, **fields: events.append((name, fields)), now_us=clock,
    )  # fmt: skip
    if groups is not None:
        files = SimulatedFiles()
        files.make_directory("d")
        door.own_groups = GroupService(CommitFile(files, "d"), groups, 1 << 40, door.event, lambda: clock() // 1000)
    server = KafkaServer(door, ConnectionBounds(request_bytes_max, idle_seconds_max), connections_max, lambda: tls)
    found = Served(server, events)
    try:
        yield found
    finally:
        found.stop()
    assert not found.told("kafka.failed"), found.told("kafka.failed")
