"""What a process gives its queues: a way to the broker, who may do what, a clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import trio

from commitlog.read.partition_view import PartitionView
from rumq.admin.answers import Answer
from rumq.admin.operations import Operation
from rumq.admin.requests import Request
from rumq.auth.permit import Permit
from rumq.queues.rules.errors import QueuesUnavailable

OpenStream = Callable[[], Awaitable[trio.abc.Stream]]


def no_views() -> Sequence[PartitionView]:
    return ()


async def no_answer(operation: Operation, request: Request) -> Answer:
    raise QueuesUnavailable("nobody asks the shards for this process")


class QueueBounds(NamedTuple):
    """As of [queues]."""

    ttl_seconds_max: int = 3600
    lasting_seconds_max: int = 7 * 86_400
    queues_max: int = 10_000
    channels_max: int = 100_000
    delayed_max: int = 10_000


DEFAULT_BOUNDS = QueueBounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePorts:
    """name: of this process among those of the broker or cluster, the same after a restart: "gateway", "grpc-n2"

    open_broker: a connection to the broker's own socket (`rumq.gateway.broker.broker_socket.open_broker`)
    permit_of: what a user may do, "" for anonymous; None: everything. event: reports events; now_us: µs since 1970
    views: the partitions of queues, as their files are now; called on a thread, may raise OSError
    ask: the shards, of the whole cluster (`rumq.gateway.broker.shard_client`); may raise RumqError, ValueError"""

    name: str
    open_broker: OpenStream
    permit_of: Callable[[str], Permit | None]
    event: Callable[..., None]
    now_us: Callable[[], int]
    views: Callable[[], Sequence[PartitionView]] = no_views
    ask: Callable[[Operation, Request], Awaitable[Answer]] = no_answer
    bounds: QueueBounds = DEFAULT_BOUNDS
