"""Pairings of a cluster's bridges, in the journal of shard 0: whichever node runs them finds what the one before noted.

Only the last one that has taken them over may write: docs/decisions/0075-bridges-follow-shard-0.md"""

from __future__ import annotations

from collections.abc import Iterable

from rumq.admin.socket.held_values import HeldValues, Named
from rumq.bridge.pairing import PairingFiles

INHERITED = ".inherited"  # behind the name of a file that is the cluster's from now on


class KeptPairings:
    """A `PairingStore`. found: what was there when they were taken over"""

    def __init__(self, held: HeldValues, found: Iterable[Named]) -> None:
        self._held = held
        self._texts = {name.decode(): text for name, text in found}

    def names(self) -> list[str]:
        return list(self._texts)

    def maybe_read(self, name: str) -> bytes | None:
        return self._texts.get(name)

    async def write(self, name: str, text: bytes) -> None:
        """Returns once it is committed. raises: ValuesLost"""
        await self._held.keep([(name.encode(), text)])
        self._texts[name] = text

    async def remove(self, name: str) -> None:
        """raises: ValuesLost"""
        await self._held.keep([(name.encode(), b"")])
        self._texts.pop(name, None)


async def inherit(store: KeptPairings, files: PairingFiles) -> None:
    """Take what bridges had noted while this data directory was a broker's alone, where the cluster has nothing newer.

    raises: OSError, of it ValuesLost"""
    for name in files.names():
        text = files.maybe_read(name)
        if text and store.maybe_read(name) is None:
            await store.write(name, text)
        path = files.path(name)
        path.rename(path.with_name(path.name + INHERITED))
