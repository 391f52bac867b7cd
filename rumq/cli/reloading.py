"""SIGHUP: read the settings again, let what can change take effect, and say what needs a restart.

Faulty settings change nothing. Knows no signal and no client."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from rumq.cli.beside import check_beside
from rumq.cli.entrances import Entrances
from rumq.cli.limits import limits
from rumq.cli.transports import reload
from rumq.config import Settings
from rumq.errors import ConfigError
from rumq.events import setup_events
from rumq.net.transports import Transports
from rumq.session.entrance import Entrance
from rumq.shards.driver import Driver
from rumq.shards.telling import tell

AT_ONCE = ("mqtt.", "events.", "auth.", "log.linger_ms", "log.pending_bytes_max", "log.free_bytes_min")
# ... but for these, which listeners and the router are made with.
AT_A_START = frozenset({"mqtt.outbox_bytes_max", "mqtt.backlog_records_max"})
OF_A_LISTENER = frozenset(
    f"listener.{key}"
    for key in (
        "anonymous", "methods", "password_file", "rules_file", "certificate_as_user", "user_as_client_id",
        "client_id_prefixes", "assigned_prefix", "empty_client_id", "maximum_qos", "topic_alias_maximum",
        "connect_seconds_max", "client_messages_per_second_max", "client_bytes_per_second_max",
        "messages_per_second_max", "bytes_per_second_max", "tls_certificate", "tls_key", "tls_authority",
        "tls_authority_dir", "tls_revoked", "tls_client_certificate", "tls_version_min", "tls_ciphers",
        "tls_ciphersuites",
    )
)  # fmt: skip
OF_FLIGHT = ("flight.anonymous", "flight.password_file", "flight.rules_file")
OF_A_STREAM = ("retention_bytes_max", "retention_seconds_max", "topics_max", "retained_bytes_max")


class Reloading:
    """settings: those in force; read: gives those that are written now, raises ConfigError"""

    def __init__(
        self,
        settings: Settings,
        read: Callable[[], Settings],
        entrances: list[Entrance],
        transports: list[Transports],
    ) -> None:
        """entrances, transports: one for each listener, changed in place"""
        self._settings, self._read = settings, read
        self._entrances, self._transports = entrances, transports

    def reload(self, driver: Driver) -> bool:
        """False where the new ones are faulty."""
        try:
            wanted = self._read()
            made = Entrances(wanted).made
            check_beside(wanted)
            reload(wanted, self._transports)
        except ConfigError as fault:
            tell("settings.refused", why=str(fault))
            return False
        changed = list(differences(self._settings, wanted))
        later = [key for key in changed if not can_change(key)]
        setup_events(wanted.events.format, wanted.events.level)
        driver.limits = limits(wanted)
        for entrance, new in zip(self._entrances, made, strict=False):
            entrance.become(new)
        driver.permit_again()
        driver.checking.guesses.seconds_max = wanted.auth.guess_seconds_max
        driver.writing.linger = wanted.log.linger_ms / 1000
        driver.slowing.pending_bytes_max = wanted.log.pending_bytes_max
        driver.refusing.free_bytes_min = wanted.log.free_bytes_min
        by_name = {stream.name: stream for stream in wanted.stream}
        for partition in driver.store.own:
            stream = by_name.get(partition.stream)
            if stream is not None:
                partition.spec = dataclasses.replace(
                    partition.spec,
                    retention_bytes_max=stream.retention_bytes_max or None,
                    retention_seconds_max=stream.retention_seconds_max or None,
                    topics_max=stream.topics_max,
                    retained_bytes_max=stream.retained_bytes_max or None,
                )
        driver.retaining.look_again()
        self._settings = wanted
        tell("settings.reloaded", changed=[key for key in changed if key not in later], after_restart=later)
        return True


def differences(old: Any, new: Any, key: str = "") -> Iterator[str]:
    """The dotted names of the keys whose values differ; of streams the names of their keys."""
    if isinstance(old, msgspec.Struct) and type(old) is type(new):
        for field in old.__struct_fields__:
            yield from differences(
                getattr(old, field), getattr(new, field), f"{key}.{field}" if key else field
            )
    elif key == "stream":
        if [s.name for s in old] != [s.name for s in new]:
            yield key
        else:
            for before, after in zip(old, new, strict=True):
                yield from differences(before, after, f"stream.{before.name}")
    elif old != new:
        yield key


def can_change(key: str) -> bool:
    """Whether a setting takes effect without a restart; of [mqtt] for clients that connect from now on."""
    if key in AT_A_START:
        return False
    if key.startswith("stream."):
        return key.rpartition(".")[2] in OF_A_STREAM
    return key in OF_A_LISTENER or key in OF_FLIGHT or key.startswith(AT_ONCE)
