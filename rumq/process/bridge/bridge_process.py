"""The process of a broker's bridges: a task for each, until SIGTERM or the end of the broker. SIGHUP: other settings.

Decision 71."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable
from pathlib import Path

import trio

from commitlog import RealFiles
from rumq.bridge.bridge import RunningBridge
from rumq.bridge.counts import FOLDER, write_figures
from rumq.bridge.pairing import Pairing, paired_names, pairing_file
from rumq.bridge.side import Side, forget_session
from rumq.errors import ClientError, ConfigError, DataDirectoryError, RumqError
from rumq.events.event_log import tell
from rumq.events.event_sender import EventSender
from rumq.events.output import RING, setup_events
from rumq.process.bridge.bridge_settings import check_bridges, local_side, remote_addresses, remote_sides, rules_of
from rumq.process.listeners.broker_secret import broker_id
from rumq.settings.table import Bridge, Settings
from rumq.supervision.broker_parent import end_with_broker, is_orphan

TURN_SECONDS = 1.0
FORGET_SECONDS_MAX = 10.0
NICE = 5  # the broker has priority

Load = Callable[[], Settings]


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
        bridges = RunningBridges(Path(data, FOLDER), broker_id(data, ""), nursery)
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
            bridges.change(settings)
            nursery.start_soon(attend, data, bridges, parent, nursery.cancel_scope)
            async for number in signals:
                if number == signal.SIGHUP:
                    reload(load, bridges)
                elif number == signal.SIGTERM or parent is None:
                    break  # a terminal sends SIGINT to the broker too, which stops us
        nursery.cancel_scope.cancel()


async def attend(data: str, bridges: RunningBridges, parent: int | None, scope: trio.CancelScope) -> None:
    """Look at the parent, send events to the gateway, write figures."""
    sender = EventSender(RING, data, "bridges")
    while parent is None or not is_orphan(parent):
        if parent is not None:
            sender.flush()
        bridges.write_figures()
        await trio.sleep(TURN_SECONDS)
    scope.cancel()


def reload(load: Load, bridges: RunningBridges) -> None:
    """Invalid settings change nothing."""
    try:
        settings = load()
        check_bridges(settings)
    except ConfigError as fault:
        tell("settings.refused", why=str(fault))
        return
    setup_events(settings.events.format, settings.events.level)
    bridges.change(settings)


class RunningBridges:
    """The bridges of the settings, each with a cancel scope."""

    def __init__(self, folder: Path, own_id: str, nursery: trio.Nursery) -> None:
        self._folder, self._own_id, self._nursery = folder, own_id, nursery
        self._running: dict[str, tuple[Bridge, RunningBridge, trio.CancelScope]] = {}

    def change(self, settings: Settings) -> None:
        """Bridges whose settings are the same go on; those with TLS begin anew, for their files may have changed."""
        wanted = {each.name: each for each in settings.bridge}
        ended = {
            name: each
            for name, (each, _, _) in self._running.items()
            if wanted.get(name) != each or each.url.startswith(("mqtts", "wss"))
        }
        for name in ended:
            self._running.pop(name)[2].cancel()
        for name, each in wanted.items():
            if name not in self._running:
                self._start(settings, each)
        for name in {*ended, *paired_names(self._folder)} - set(wanted):
            gone = ended.get(name)
            sides = [local_side(settings, gone or Bridge(name=name))]
            if gone is not None:
                sides += remote_sides(gone, self._own_id)
            self._nursery.start_soon(self._forget, name, sides)

    def _start(self, settings: Settings, bridge: Bridge) -> None:
        running = RunningBridge(
            rules_of(bridge), local_side(settings, bridge), remote_addresses(bridge, self._own_id),
            Pairing(pairing_file(self._folder, bridge.name)), tell,
        )  # fmt: skip
        scope = trio.CancelScope()
        self._running[bridge.name] = bridge, running, scope

        async def until_cancelled() -> None:
            with scope:
                await running.run()

        self._nursery.start_soon(until_cancelled)

    async def _forget(self, name: str, sides: list[Side]) -> None:
        """End the sessions of a bridge that is in the settings no more: they would hold messages for nobody."""
        for side in sides:
            try:
                with trio.move_on_after(FORGET_SECONDS_MAX):
                    await forget_session(side)
            except (ClientError, OSError) as fault:
                tell("bridge.unforgotten", name=name, side=side.name, why=str(fault))
        pairing_file(self._folder, name).unlink(missing_ok=True)

    def write_figures(self) -> None:
        """raises: OSError"""
        write_figures(self._folder, {name: running.counts for name, (_, running, _) in self._running.items()})
