"""Messages between the agent and the other processes of its node, over a Unix socket: `rumq.net.frames`."""

from __future__ import annotations

from typing import Any

import msgspec

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.control.control_plane import ControlHealth
from rumq.cluster.control.records import ShardRecord, Versioned, View

SOCKET_NAME = "_cluster/agent.sock"  # of the Unix socket, below the data directory
ORDER_BYTES_MAX = 1 << 16  # of the frame of an order that comes from another node, and of its answer


class Here(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """First of all: who speaks. role: "shard", "edge", "kafka", "bridges" or "operator"

    shard: its number, -1 for others"""

    role: str
    shard: int
    pid: int


class Seen(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The view, at once and whenever it changes."""

    view: View


class Claim(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Replace a shard's record, if its revision is still that. request: for the answer"""

    request: int
    shard: int
    revision: int
    record: ShardRecord


class Claimed(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """won: the record is ours; known: False if nobody knows, for no answer came; now: the record as it is, or None

    After known=False the change may still come into force: a later view that has the claim id says so. To claim once
    more with the same revision is safe, for one of the two at most can win."""

    request: int
    won: bool
    known: bool
    now: Versioned | None


class Report(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """What a shard process says of itself, each second and at changes, for `rumqd cluster status`.

    role: "standby", "opening" or "leader"; figures: committed lsns by partition, replicas that are behind, and the like
    """

    shard: int
    role: str
    epoch: int
    figures: dict[str, Any]


class Order(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """What the operator wants of a leader. what: "hand-over" (to: node id) or "members" (members: the wanted record's
    replicas); request: for the answer"""

    request: int
    what: str
    shard: int
    to: str = ""
    members: list[str] = []


class OrderResult(msgspec.Struct, frozen=True, tag="Done", array_like=True):
    """Answers an order. why: empty when it was carried out"""

    request: int
    why: str = ""


class KafkaAt(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The Kafka server of this node serves clients at this address, "host:port", until its link ends."""

    address: str


class AskStatus(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """An operator asks; answered by `AgentStatus`."""

    request: int


class AgentStatus(msgspec.Struct, frozen=True, tag="Status", array_like=True):
    """What the agent of a node knows. view: None until the control plane has answered once

    reports: the latest of each shard process of this node, by shard; processes: those that are linked to the agent
    lost_seconds: since when the control plane has not answered, 0 if it does; requests: sent to it so far
    terms: of the leaders that have answered; None: nobody has asked them; ends: by shard, how often its process on this
    node has ended within the last minute"""

    request: int
    view: View | None
    reports: list[Report]
    processes: list[Here]
    health: ControlHealth
    lost_seconds: float
    requests: int
    terms: list[TermRow] | None = None
    ends: dict[int, int] = {}


class DrainNode(msgspec.Struct, frozen=True, tag="Leave", array_like=True):
    """An operator drains this node, or takes that back: `NodeRecord.leaves`. Answered by `OrderResult`.

    node: the id of a node that is removed instead, or is no longer: `View.removed`"""

    request: int
    leaves: bool
    node: str = ""


AgentMessage = (
    Here | Seen | Claim | Claimed | Report | Order | OrderResult | AskStatus | AgentStatus | DrainNode | KafkaAt
)
