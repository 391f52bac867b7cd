"""The settings in force, kept by the supervisor: a shard that is started again begins with them."""

from __future__ import annotations

from collections.abc import Callable

from rumq.cli.broker.setting_changes import in_force
from rumq.cli.wiring.listener_policies import ListenerPolicies
from rumq.cli.wiring.sidecars import check_sidecars
from rumq.cli.wiring.transports import transports_of
from rumq.config import Settings
from rumq.errors import RumqError
from rumq.events import setup_events


class LatestSettings:
    """settings: those of the start, with what reloads have changed since"""

    def __init__(self, settings: Settings, read: Callable[[], Settings]) -> None:
        """read: gives those that are written now, raises ConfigError"""
        self.settings, self._read = settings, read

    def reread(self) -> None:
        """Invalid settings change nothing; the shards, which read them too, report why."""
        try:
            wanted = self._read()
            check_files(wanted)
        except RumqError:
            return
        self.settings = in_force(self.settings, wanted)
        setup_events(wanted.events.format, wanted.events.level)


def check_files(settings: Settings) -> None:
    """raises: ConfigError, with what is wrong with files of users, rules and certificates"""
    ListenerPolicies(settings, says_exposed=False)
    transports_of(settings)
    check_sidecars(settings)
