"""A whole shard in a thread, over a log in memory, for clients that nobody here wrote."""

import threading
from typing import Any

from commitlog import OpenOptions, StoreLayout, StreamSpec, open_store
from commitlog.testing.simulated_files import SimulatedFiles
from rumq.mqtt.topics import matches
from rumq.net.lingering_close import LingeringClose
from rumq.net.listening.listener import Acceptor, open_sockets
from rumq.net.listening.transports import ConnectionSetup, Transports
from rumq.net.transport.transport_handshake import TransportHandshakes
from rumq.shards.assembly.context import Platform, ShardContext
from rumq.shards.assembly.shard import build_shard
from tests.commitlog.records import DEAD, NOW, numbers

SECONDS_MAX = 60.0
STATE = StreamSpec("_state", (), 1, "process", 1 << 20, 86_400)


class Served:
    def __init__(self, **listeners: Transports) -> None:
        """listeners: by name; `ports` has their ports by the same names"""
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._told = threading.Condition()
        store = open_store(
            SimulatedFiles(),
            "data",
            StoreLayout([StreamSpec("main", ("#",), durability="process")], matches, internal=STATE),
            OpenOptions(NOW, random=numbers(1)),
            holder=DEAD,
        )
        self._shard = shard = build_shard(store, ShardContext(linger_seconds=0.0), Platform(self.event))
        self._pump, later = shard.pump, shard.timers.later
        self._pump.lingering = LingeringClose(self._pump, later=later, seconds_max=SECONDS_MAX)
        shard.operation.startup.read_journal(shard.events.tell)
        shard.operation.startup.advance()
        handshakes = TransportHandshakes(self._pump, later=later, event=self.event)
        self._listeners = {
            name: Acceptor(
                open_sockets("127.0.0.1", 0, 100)[0],
                ConnectionSetup(transports, handshakes, self._pump, 1 << 20, shard.clients.broker.welcome),
                connections_max=1000, event=self.event, later=later,
            )
            for name, transports in listeners.items()
        }  # fmt: skip
        self.ports = {name: listener.address[1] for name, listener in self._listeners.items()}
        self._ends = False
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def event(self, name: str, **fields: Any) -> None:
        with self._told:
            self.events.append((name, fields))
            self._told.notify_all()

    def named(self, name: str) -> list[dict[str, Any]]:
        return [fields for told, fields in self.events if told == name]

    def await_more(self, name: str, than: int) -> list[dict[str, Any]]:
        """The events of a name that came after so many of them, once there are any."""
        with self._told:
            assert self._told.wait_for(lambda: len(self.named(name)) > than, SECONDS_MAX), self.events
        return self.named(name)[than:]

    def _run(self) -> None:
        try:
            while not self._ends:
                self._pump.turn(min(0.02, self._shard.turn.seconds_to_next_deadline()))
        except BaseException as fault:
            self._fault = fault

    def end(self) -> None:
        """raises: what a turn has raised; AssertionError after a crash of a client's"""
        self._ends = True
        self._thread.join(SECONDS_MAX)
        for listener in self._listeners.values():
            listener.close()
        self._pump.close()
        self._shard.stop()
        if self._fault is not None:
            raise self._fault
        assert not self.named("client.crashed") and not self.named("task.failed")
