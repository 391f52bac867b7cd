"""The settings in force, each with where it came from, and what a reload has read that waits for a restart.

As this process has read them: it is started with the broker's file, environment and flags, and reads them again when
the broker does. A password in an address is not told."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from rumq.gateway.contract.endpoints import EffectiveSetting
from rumq.settings.keys import LISTENER, STREAM, maybe_key
from rumq.settings.load import Loaded
from rumq.settings.show import as_object

PASSWORD = re.compile(r"(?<=//)[^/@\s]*:[^/@\s]*(?=@)")


class EffectiveSettings:
    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._next, self._later = loaded, frozenset[str]()

    @property
    def started(self) -> Loaded:
        """What is in force of the keys that need a restart."""
        return self._loaded

    def reread(self, loaded: Loaded, later: Collection[str]) -> None:
        """later: keys, or sections, of which the new value waits for a restart"""
        self._next, self._later = loaded, frozenset(later)

    def rows(self) -> list[EffectiveSetting]:
        started, wanted = as_object(self._loaded), as_object(self._next)
        found = []
        for key in dict.fromkeys((*started, *wanted)):
            waits = any(key == each or key.startswith(f"{each}.") for each in self._later)
            now = started.get(key) if waits else wanted.get(key)
            then = wanted.get(key) if waits else None
            about = maybe_key(key)
            shown = now or {"value": None, "source": "not there yet"}
            found.append(
                EffectiveSetting(
                    key=key, value=told(shown["value"]), source=str(shown["source"]), line=about.line if about else "",
                    default=told(msgspec.to_builtins(about.default)) if about and key_has_default(key) else None,
                    bounds=about.bounds if about else "", applies=about.applies if about else "restart",
                    waits=then is not None, after_restart=told(then["value"]) if then is not None else None,
                )
            )  # fmt: skip
        return found


def key_has_default(key: str) -> bool:
    return key.partition(".")[0] not in (STREAM, LISTENER)


def told(value: object) -> object:
    if isinstance(value, str):
        return PASSWORD.sub("...", value)
    if isinstance(value, list | tuple):
        return [told(each) for each in value]
    return value
