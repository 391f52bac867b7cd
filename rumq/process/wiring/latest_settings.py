"""The settings in force, kept by the supervisor: a shard that is started again begins with them."""

from __future__ import annotations

from collections.abc import Callable

from rumq.errors import RumqError
from rumq.events.event_log import tell
from rumq.events.output import setup_events
from rumq.process.listeners.listener_policies import ListenerPolicies
from rumq.process.listeners.listening_sockets import Doorways
from rumq.process.listeners.offered_sockets import SocketOffers
from rumq.process.listeners.setting_changes import in_force
from rumq.process.listeners.transports import transports_of
from rumq.process.wiring.sidecars import check_sidecars
from rumq.settings.table import Settings


class LatestSettings:
    """settings: those of the start, with what reloads have changed since"""

    def __init__(
        self,
        settings: Settings,
        read: Callable[[], Settings],
        doorways: Doorways,
        offers: SocketOffers | None,
    ) -> None:
        """read: gives those that are written now, raises ConfigError

        doorways: of the listeners in force; offers: sends new ones to the shards, None where none come"""
        self.settings, self._read = settings, read
        self._doorways, self._offers = doorways, offers

    def reread(self) -> bool:
        """Invalid settings change nothing; the shards, which read them too, report why.

        returns: False: new listeners cannot be bound, which is reported, and the shards are not to reload"""
        try:
            wanted = self._read()
            check_files(wanted)
        except RumqError:
            return True
        try:
            change = self._doorways.prepare(self.settings, wanted)
        except RumqError as fault:
            tell("settings.refused", why=str(fault))
            return False
        self.settings = in_force(self.settings, wanted)
        setup_events(wanted.events.format, wanted.events.level)
        self._doorways.commit(change, wanted)
        if self._offers is not None:
            self._offers.send(self.settings, self._doorways)
        return True


def check_files(settings: Settings) -> None:
    """raises: ConfigError, with what is wrong with files of users, rules and certificates"""
    ListenerPolicies(settings, says_exposed=False)
    transports_of(settings)
    check_sidecars(settings)
