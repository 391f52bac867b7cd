"""Whether this node of a cluster has a copy of every partition that keeps up, so that nobody reads from one in vain.

A reader of files would wait silently at the end of a copy that nobody feeds any more. So the leaders are asked how far
they are, now and then; what they had committed must be here some seconds later. A broker alone has everything. Time is
an argument; knows no socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

from rumq.services.contract.faults import CallFault

LOOK_SECONDS = 3.0
AWAY_SECONDS_MAX = 15.0  # a change of leaders takes about one
GENERATION = 1
NOT_STORED = "memory"  # $SYS


class Led(NamedTuple):
    """A partition, as its leader sees it."""

    name: str
    committed_lsn: int


class CopyWatch:
    """why: this node cannot serve readers; empty: it can"""

    def __init__(self) -> None:
        self.why = ""
        self._led: Mapping[str, int] = {}
        self._away_since: float | None = None

    def check(self) -> None:
        """raises: CallFault"""
        if self.why:
            raise CallFault("NO_COPY_HERE", f"{self.why}: call another node")

    def look(self, led: Iterable[Led] | None, ends: Mapping[str, int], now: float) -> None:
        """led: all partitions now; None: not all leaders answer; ends: of the copies here, as they are now"""
        behind = sorted(name for name, lsn in self._led.items() if lsn > ends.get(name, 0))
        if led is None:
            self._away_since = now if self._away_since is None else self._away_since
            if now - self._away_since > AWAY_SECONDS_MAX:
                self.why = "this node does not reach the leaders of all shards, and does not know whether it is behind"
            return
        self._away_since = None
        found = {each.name: each.committed_lsn for each in led}
        missing = sorted(found.keys() - ends.keys())
        self._led = {name: lsn for name, lsn in found.items() if name in ends}
        if missing:
            self.why = f"this node has no copy of {', '.join(missing)}"
        elif behind:
            self.why = (
                f"the copy of {', '.join(behind)} on this node is more than {LOOK_SECONDS:.0f} s behind its leader"
            )
        else:
            self.why = ""


async def watch_copies(
    watch: CopyWatch, ask: Callable[[], Awaitable[list[Led] | None]], ends: Callable[[], Awaitable[Mapping[str, int]]],
    now: Callable[[], float],
) -> None:  # fmt: skip
    """Until cancelled. ask, ends: as `CopyWatch.look` takes them"""
    while True:
        watch.look(await ask(), await ends(), now())
        await asyncio.sleep(LOOK_SECONDS)


def name_of(stream: str, partition: int) -> str:
    return f"{stream}/g{GENERATION}/p{partition}"
