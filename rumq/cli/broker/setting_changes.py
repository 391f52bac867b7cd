"""Differences between two readings of the settings, and whether they need a restart.

A key that names a file has changed if the file's content has. Applies nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from rumq.cli.wiring.listener_policies import FLIGHT, key_of
from rumq.config import Settings

AT_ONCE = (
    "mqtt.", "events.", "auth.", "log.linger_ms", "log.pending_bytes_max", "log.free_bytes_min",
    "log.free_percent_min", "log.wanted_free_percent_min",
)  # fmt: skip
# ... except these, which listeners and the router read once at their construction.
AT_A_START = frozenset(
    {"mqtt.outbox_bytes_max", "mqtt.backlog_records_max", "events.lag_records_max", "events.lag_seconds_max"}
)
OF_A_LISTENER = frozenset(
    (
        "anonymous", "methods", "password_file", "rules_file", "certificate_as_user", "user_as_client_id",
        "client_id_prefixes", "assigned_prefix", "empty_client_id", "maximum_qos", "topic_alias_maximum",
        "receive_maximum", "inflight_max", "subscriptions_max", "connect_seconds_max",
        "client_messages_per_second_max", "client_bytes_per_second_max", "messages_per_second_max",
        "bytes_per_second_max", "client_replay_bytes_per_second_max", "replay_bytes_per_second_max",
        "tls_certificate", "tls_key", "tls_authority", "tls_authority_dir", "tls_revoked",
        "tls_client_certificate", "tls_version_min", "tls_ciphers", "tls_ciphersuites",
    )
)  # fmt: skip
BOUND_TO_ITS_SOCKET = frozenset(
    (
        "host", "port", "path", "path_mode", "protocol", "backlog", "connections_max", "coalesce_us", "mount_point",
        "proxies", "websocket_path", "websocket_origins", "tls_handshakes_max",
    )
)  # fmt: skip
OF_FLIGHT = ("flight.anonymous", "flight.password_file", "flight.rules_file")
OF_A_STREAM = (
    "retention", "retention_bytes_max", "retention_seconds_max", "topics_max", "topics_bytes_max", "retained_bytes_max",
)  # fmt: skip
FILES = (
    "password_file",
    "rules_file",
    "token_keys_file",
    "tls_certificate",
    "tls_key",
    "tls_authority",
    "tls_revoked",
)
DIRECTORIES = ("tls_authority_dir",)
UNREADABLE = b""


def differences(old: Any, new: Any, key: str = "") -> Iterator[str]:
    """Dotted names of keys with different values; for streams, the names of their keys."""
    if isinstance(old, Settings) and isinstance(new, Settings):
        yield from listener_differences(old, new)
    if isinstance(old, msgspec.Struct) and type(old) is type(new):
        for field in old.__struct_fields__:
            if key or field not in ("listener", "more_listeners"):
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


def listener_differences(old: Settings, new: Settings) -> Iterator[str]:
    """Changes by number of the listener; "listener" if their count differs."""
    if len(old.listeners) != len(new.listeners):
        yield "listener"
    for number, (before, after) in enumerate(zip(old.listeners, new.listeners, strict=False)):
        yield from differences(before, after, key_of(number))


def can_change(key: str) -> bool:
    """Whether a setting takes effect without a restart; those of [mqtt] for new connections."""
    if key in AT_A_START:
        return False
    section, _, name = key.rpartition(".")
    if section.startswith("stream."):
        return name in OF_A_STREAM
    if section.startswith("listener"):
        return name in OF_A_LISTENER
    return key in OF_FLIGHT or key.startswith(AT_ONCE)


def need_restart(old: Settings, new: Settings, changed: list[str]) -> list[str]:
    """The changed keys that need a restart."""
    switched = {
        f"{key_of(number)}.tls_certificate"
        for number, (before, after) in enumerate(zip(old.listeners, new.listeners, strict=False))
        if bool(before.tls_certificate) != bool(after.tls_certificate)  # TLS was switched on or off
    }
    return [key for key in changed if key in switched or not can_change(key)]


def in_force(old: Settings, new: Settings) -> Settings:
    """`old`, with the values of `new` for the keys that a reload puts into force. A listener that has TLS in only one
    of the two keeps all its TLS keys: some of them alone would make no pair of certificate and key."""
    kept = set(need_restart(old, new, list(differences(old, new))))
    listeners = list(old.listeners)
    for number, (before, after) in enumerate(zip(old.listeners, new.listeners, strict=False)):
        own = {name for name in before.__struct_fields__ if f"{key_of(number)}.{name}" in kept}
        if "tls_certificate" in own:
            own |= {name for name in before.__struct_fields__ if name.startswith("tls_")}
        listeners[number] = msgspec.structs.replace(after, **{name: getattr(before, name) for name in own})
    sections: dict[str, Any] = {}
    for name in old.__struct_fields__:
        if name not in ("listener", "more_listeners", "stream"):
            sections[name] = updated(getattr(old, name), getattr(new, name), name, kept)
    if "stream" not in kept:
        pairs = zip(old.stream, new.stream, strict=True)
        sections["stream"] = tuple(updated(was, now, f"stream.{was.name}", kept) for was, now in pairs)
    return msgspec.structs.replace(
        old, listener=listeners[0], more_listeners=tuple(listeners[1:]), **sections
    )


def updated(old: msgspec.Struct, new: msgspec.Struct, key: str, kept: set[str]) -> msgspec.Struct:
    """One section: `new`, with the values of `old` for the keys that are kept."""
    own = {name: getattr(old, name) for name in old.__struct_fields__ if f"{key}.{name}" in kept}
    return msgspec.structs.replace(new, **own)


def file_digests(settings: Settings) -> dict[str, tuple[str, bytes]]:
    """Key -> (path, SHA-256 of its content), for each key that names a file; UNREADABLE if that fails.

    cost: every such file is read"""
    sections: list[tuple[str, Any]] = [("auth", settings.auth), (key_of(FLIGHT), settings.flight)]
    sections += [(key_of(number), listener) for number, listener in enumerate(settings.listeners)]
    found = {}
    for section, values in sections:
        for name in (*FILES, *DIRECTORIES):
            if path := getattr(values, name, ""):
                found[f"{section}.{name}"] = path, digest(path)
    return found


def digest(path: str) -> bytes:
    sha = hashlib.sha256()
    try:
        for each in sorted(os.scandir(path), key=lambda e: e.name) if os.path.isdir(path) else [path]:
            with open(each, "rb") as file:
                sha.update(os.fsencode(each) + b"\0" + file.read())
    except OSError:
        return UNREADABLE
    return sha.digest()


def changed_files(old: dict[str, tuple[str, bytes]], new: dict[str, tuple[str, bytes]]) -> list[str]:
    """Keys with the same file and different content."""
    return [
        key
        for key, (path, content) in new.items()
        if key in old and old[key][0] == path and old[key][1] != content
    ]
