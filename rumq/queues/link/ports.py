"""What a process gives its queues: a way to the broker, who may do what, a clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import trio

from commitlog.read.partition_view import PartitionView
from rumq.auth.permit import Permit

OpenStream = Callable[[], Awaitable[trio.abc.Stream]]
STREAM = "queues"  # of the settings: all messages and definitions of queues


def no_views() -> Sequence[PartitionView]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """name: of this process among those of the broker or cluster, the same after a restart: "gateway", "grpc-n2"

    open_broker: a connection to the broker's own socket (`rumq.gateway.broker.broker_socket.open_broker`)
    permit_of: what a user may do, "" for anonymous; None: everything. event: reports events; now_us: µs since 1970
    views: the log's partitions as its files are now; called on a thread, may raise OSError"""

    name: str
    open_broker: OpenStream
    permit_of: Callable[[str], Permit | None]
    event: Callable[..., None]
    now_us: Callable[[], int]
    views: Callable[[], Sequence[PartitionView]] = no_views
