"""SIGHUP: read the settings again, apply what can change at run time, and report what needs a restart.

Invalid settings change nothing. Knows no signal."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from rumq.errors import RumqError
from rumq.events.event_log import tell
from rumq.events.output import setup_events
from rumq.process.listeners.limits import limit_pending_logins, limits
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.process.listeners.setting_changes import (
    changed_files,
    differences,
    file_digests,
    in_force,
    need_restart,
    sections_before,
)
from rumq.process.shard.shard_listeners import ShardListeners
from rumq.process.wiring.disk_bounds import reserve
from rumq.process.wiring.sidecars import check_sidecars
from rumq.process.wiring.streams import reloaded
from rumq.settings.table import Settings
from rumq.shards.assembly.shard import Shard


class Reload:
    """settings: those in force; read: returns the current ones from file and environment, raises ConfigError"""

    def __init__(self, settings: Settings, read: Callable[[], Settings], listeners: ShardListeners) -> None:
        """listeners: changed in place"""
        self._settings, self._read, self._listeners = settings, read, listeners
        self._files = file_digests(settings)

    def reload(self, shard: Shard) -> bool:
        """False if the new settings are invalid."""
        try:
            wanted = self._read()
            made = ListenerPolicies(wanted).policies
            check_sidecars(wanted)
            change = self._listeners.prepare(self._settings, wanted)
        except RumqError as fault:
            tell("settings.refused", why=str(fault))
            return False
        now = in_force(self._settings, wanted)
        files = file_digests(now)
        moved = sections_before(change.pairs)
        changed = [*differences(self._settings, wanted), *changed_files(self._files, files, moved)]
        later = need_restart(self._settings, wanted, changed)
        setup_events(now.events.format, now.events.level)
        shard.clients.broker.limits = limits(now)
        limit_pending_logins(now, shard.pump.pending_logins)
        self._listeners.commit(change, wanted, made, now, shard)
        shard.clients.broker.permit_again()
        shard.clients.auth_pool.guesses.seconds_max = now.auth.guess_seconds_max
        shard.writing.commit.linger = now.log.linger_ms / 1000
        shard.writing.backpressure.pending_bytes_max = now.log.pending_bytes_max
        set_disk(shard, now)
        if now.trace != self._settings.trace:
            shard.turn.appender.trace(now.trace.sample_every, now.trace.traces_per_second_max)
        by_name = {stream.name: stream for stream in now.stream}
        for partition in shard.store.own:
            stream = by_name.get(partition.stream)
            if stream is not None:
                partition.spec = reloaded(partition.spec, stream)
        shard.writing.retained_quota.look_again()
        self._settings, self._files = now, files
        tell("settings.reloaded", changed=[key for key in changed if key not in later], after_restart=later)
        return True


def set_disk(shard: Shard, settings: Settings) -> None:
    """Apply the limits of free disk space."""
    shard.writing.admission.free_bytes_min = reserve(settings, shard.store.root)
    shard.operation.disk.settings = dataclasses.replace(
        shard.operation.disk.settings,
        percent=settings.log.free_percent_min,
        wanted_percent=settings.log.wanted_free_percent_min,
    )
