"""With what a leader takes office, and how its process ends when another one leads."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from rumq.cluster.control.records import ShardRecord, View
from rumq.supervision.supervisor import DEPOSED


def leave() -> None:
    """End the process at once: what is in flight must not be sealed."""
    os._exit(DEPOSED)


@dataclass(frozen=True, slots=True)
class Term:
    """With what a leader took office. cluster: its id; node: of this node; epoch, record: as claimed

    view: of the cluster then; resolve: the IP address of a host, None while it is looked up; end: ends the process of a
    leader that is deposed; quorum: told when too few replicas answer, False, and when enough do again
    fenced: notes on this node's disk that the term of a record is opened; doubted: that its copy lacks what was
    committed, with the reason; noted: by partition, what is committed and what is synced here
    epoch_elsewhere: of another shard's leader, the epoch under which this shard was linked to it last; 0: it is on this
    node, or there was none"""

    cluster: str
    shard: int
    node: str
    epoch: int
    record: ShardRecord
    view: View
    resolve: Callable[[str], str | None] = lambda host: host
    end: Callable[[], None] = leave
    quorum: Callable[[bool], None] = lambda has_quorum: None
    fenced: Callable[[ShardRecord], None] = lambda record: None
    doubted: Callable[[str], None] = lambda why: None
    noted: Callable[[dict[str, int], dict[str, tuple[int, str]]], None] = lambda marks, held: None
    epoch_elsewhere: Callable[[int], int] = lambda shard: 0
