"""With what a leader takes office, and how its process ends when another one leads."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from rumq.cluster.control.records import ShardRecord, View
from rumq.shards.processes.supervisor import DEPOSED


def leave() -> None:
    """End the process at once: what is in flight must not be sealed."""
    os._exit(DEPOSED)


@dataclass(frozen=True, slots=True)
class Term:
    """With what a leader took office. cluster: its id; node: of this node; epoch, record: as claimed

    view: of the cluster then; resolve: the IP address of a host, None while it is looked up; end: ends the process of a
    leader that is deposed"""

    cluster: str
    shard: int
    node: str
    epoch: int
    record: ShardRecord
    view: View
    resolve: Callable[[str], str | None] = lambda host: host
    end: Callable[[], None] = leave
