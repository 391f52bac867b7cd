"""Messages between the agent and the other processes of its node, over a Unix socket: `rumq.cluster.links.frames`."""

from __future__ import annotations

from typing import Any

import msgspec

from rumq.cluster.control.records import ShardRecord, Versioned, View


class Here(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """First of all: who speaks. role: "shard" or "edge"; shard: its number, -1 for an edge"""

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
    """won: the record is ours; known: False if the control plane did not answer; now: the record as it is"""

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


class Done(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Answers an order. why: empty when it was carried out"""

    request: int
    why: str = ""


AgentMessage = Here | Seen | Claim | Claimed | Report | Order | Done
