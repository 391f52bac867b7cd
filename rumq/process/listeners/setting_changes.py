"""Differences between two readings of the settings, and whether they need a restart.

A key that names a file has changed if the file's content has. Applies nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rumq.process.listeners.listener_changes import Pair, are_fixed, identities, paired, with_listeners
from rumq.process.listeners.listener_policies import FLIGHT, GRPC, KAFKA, key_of
from rumq.settings.keys import BRIDGE, LISTENER, VIEW, VIEWS, maybe_key
from rumq.settings.table import Listener, Settings
from rumq.settings.types.setting_types import RESTART

FILES = (
    "password_file",
    "rules_file",
    "token_keys_file",
    "tls_certificate",
    "tls_key",
    "tls_authority",
    "tls_revoked",
    "headers_file",
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
                yield from differences(getattr(old, field), getattr(new, field), f"{key}.{field}" if key else field)
    elif key == "stream":
        if [s.name for s in old] != [s.name for s in new]:
            yield key
        else:
            for before, after in zip(old, new, strict=True):
                yield from differences(before, after, f"stream.{before.name}")
    elif old != new:
        yield VIEW if key == VIEWS else key


def listener_differences(old: Settings, new: Settings) -> Iterator[str]:
    """Changes by place of the listener in `new`; "listener" if some come or go."""
    pairs = paired(old, new)
    if identities(old) != identities(new):
        yield "listener"
    for before, after in pairs:
        if before is not None and after is not None:
            yield from differences(old.listeners[before], new.listeners[after], key_of(after))


def can_change(key: str) -> bool:
    """Whether the table says that a setting takes effect without a restart."""
    known = maybe_key(key)
    return known is not None and known.applies != RESTART


def need_restart(old: Settings, new: Settings, changed: list[str]) -> list[str]:
    """The changed keys that need a restart; listeners come and go without, but for those of a node."""
    # The first bridge needs a process, which a broker has from its start or not at all.
    fixed = {LISTENER: are_fixed(old), BRIDGE: not old.bridge}
    return [key for key in changed if fixed.get(key, not can_change(key))]


def in_force(old: Settings, new: Settings) -> Settings:
    """`old`, with the values of `new` for the keys that a reload puts into force."""
    kept = set(need_restart(old, new, list(differences(old, new))))
    sections: dict[str, Any] = {}
    for name in old.__struct_fields__:
        if name not in ("listener", "more_listeners", "stream", "function", BRIDGE, VIEWS):
            sections[name] = updated(getattr(old, name), getattr(new, name), name, kept)
    if BRIDGE not in kept:
        sections[BRIDGE] = new.bridge
    if "stream" not in kept:
        pairs = zip(old.stream, new.stream, strict=True)
        sections["stream"] = tuple(updated(was, now, f"stream.{was.name}", kept) for was, now in pairs)
    return with_listeners(msgspec.structs.replace(old, **sections), listeners_in_force(old, new))


def listeners_in_force(old: Settings, new: Settings) -> list[Listener]:
    """The listeners after a reload, each with the values of `new` for the keys that it puts into force."""
    found = []
    for before, after in paired(old, new):
        if before is None or after is None:
            found.append(new.listeners[after] if after is not None else old.listeners[before or 0])
            continue
        was, now = old.listeners[before], new.listeners[after]
        own = {name: getattr(was, name) for name in was.__struct_fields__ if not can_change(f"{LISTENER}.{name}")}
        found.append(msgspec.structs.replace(now, **own))
    return found


def sections_before(pairs: list[Pair]) -> dict[str, str]:
    """Section of each listener after a reload -> its section before; empty for a new one."""
    return {key_of(place): key_of(before) if before is not None else "" for place, (before, _) in enumerate(pairs)}


def updated(old: msgspec.Struct, new: msgspec.Struct, key: str, kept: set[str]) -> msgspec.Struct:
    """One section: `new`, with the values of `old` for the keys that are kept."""
    own = {name: getattr(old, name) for name in old.__struct_fields__ if f"{key}.{name}" in kept}
    return msgspec.structs.replace(new, **own)


def file_digests(settings: Settings) -> dict[str, tuple[str, bytes]]:
    """Key -> (path, SHA-256 of its content), for each key that names a file; UNREADABLE if that fails.

    cost: every such file is read"""
    sections: list[tuple[str, Any]] = [
        ("auth", settings.auth),
        (key_of(FLIGHT), settings.flight),
        (key_of(GRPC), settings.grpc),
        (key_of(KAFKA), settings.kafka),
        ("trace", settings.trace),
    ]
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


def changed_files(
    old: dict[str, tuple[str, bytes]],
    new: dict[str, tuple[str, bytes]],
    moved: Mapping[str, str] | None = None,
) -> list[str]:
    """Keys with the same file and different content. moved: as of `sections_before`"""
    changed = []
    for key, (path, content) in new.items():
        section, _, name = key.rpartition(".")
        was = old.get(f"{(moved or {}).get(section, section)}.{name}")
        if was is not None and was[0] == path and was[1] != content:
            changed.append(key)
    return changed
