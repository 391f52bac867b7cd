"""The process of a broker's bridges: a task for each, until SIGTERM or the end of the broker. SIGHUP: other settings.

Decision 71."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import trio

from commitlog import RealFiles
from rumq.admin.socket.held_values import ask_of_bridges
from rumq.bridge.counts import FOLDER, BridgeCounts, write_elsewhere, write_figures
from rumq.bridge.pairing import PairingFiles
from rumq.cluster.connections.agent_views import AgentViews
from rumq.errors import ConfigError, DataDirectoryError, RumqError
from rumq.events.event_lines import RING
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.events.output import setup_events
from rumq.process.bridge.bridge_settings import check_bridges
from rumq.process.bridge.node_bridges import NodeBridges
from rumq.process.bridge.running_bridges import RunningBridges
from rumq.process.listeners.broker_secret import broker_id
from rumq.settings.table import Settings
from rumq.supervision.broker_parent import end_with_broker, is_orphan

TURN_SECONDS = 1.0
NICE = 5  # the broker has priority

Load = Callable[[], Settings]


class AllBridges(Protocol):
    @property
    def elsewhere(self) -> str:
        """Which other node runs them, in a sentence; empty: this process does."""

    def change(self, settings: Settings) -> None: ...

    def counts(self) -> Mapping[str, BridgeCounts]:
        """Of those that run here."""


def serve(load: Load, *, for_broker: bool) -> int:
    """for_broker: it ends with the broker that started it. raises: ConfigError, DataDirectoryError, RumqError"""
    parent = end_with_broker() if for_broker else None
    settings = load()
    setup_events(settings.events.format, settings.events.level)
    check_bridges(settings)
    data = os.path.abspath(settings.data.dir)
    if not RealFiles().exists(f"{data}/FORMAT"):
        raise DataDirectoryError(settings.data.dir, "no data directory of rumq: name one with --data")
    lock = hold(Path(data, FOLDER))  # as long as this process lives
    os.nice(NICE)
    try:
        trio.run(run, load, settings, data, parent)
    finally:
        os.close(lock)
    return 0


def hold(folder: Path) -> int:
    """The lock of the bridges: two processes would take each other's sessions. raises: RumqError"""
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise RumqError(f"{folder}: another process runs the bridges of this broker: stop it first") from None
    return lock


async def run(load: Load, settings: Settings, data: str, parent: int | None) -> None:
    """parent: None: it was started by hand"""
    async with trio.open_nursery() as nursery:
        bridges = await begun(settings, data, nursery)
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
            nursery.start_soon(attend, data, bridges, parent, nursery.cancel_scope)
            async for number in signals:
                if number == signal.SIGHUP:
                    reload(load, bridges)
                elif number == signal.SIGTERM or parent is None:
                    break  # a terminal sends SIGINT to the broker too, which stops us
        nursery.cancel_scope.cancel()


async def begun(settings: Settings, data: str, nursery: trio.Nursery) -> AllBridges:
    """The bridges of a broker alone run at once; those of a cluster run while this node is the one."""
    folder, own_id = Path(data, FOLDER), broker_id(data, settings.cluster.name)
    if settings.cluster.name:
        node = NodeBridges(settings, folder, own_id, ask_of_bridges(data))
        nursery.start_soon(AgentViews(data, "bridges", node.seat.see).run)
        nursery.start_soon(node.seat.run)
        return node
    alone = RunningBridges(PairingFiles(folder), own_id, nursery)
    alone.change(settings)
    return alone


async def attend(data: str, bridges: AllBridges, parent: int | None, scope: trio.CancelScope) -> None:
    """Look at the parent, send events to the gateway, write figures."""
    sender = EventSender(RING, data, "bridges")
    while parent is None or not is_orphan(parent):
        if parent is not None:
            sender.flush()
        write_figures(Path(data, FOLDER), bridges.counts())
        write_elsewhere(Path(data, FOLDER), bridges.elsewhere)
        await trio.sleep(TURN_SECONDS)
    scope.cancel()


def reload(load: Load, bridges: AllBridges) -> None:
    """Invalid settings change nothing."""
    try:
        settings = load()
        check_bridges(settings)
    except ConfigError as fault:
        tell("settings.refused", why=str(fault))
        return
    setup_events(settings.events.format, settings.events.level)
    bridges.change(settings)
