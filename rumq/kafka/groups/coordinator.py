"""All groups of this server: found by user and name, within bounds, and looked after as time passes.

A group without members is forgotten; its offsets are `CommittedOffsets`'. No sockets, no files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rumq.kafka.groups.group import ConsumerGroup
from rumq.kafka.groups.messages import (
    JoinAnswer,
    JoinRequest,
    KafkaGroupKey,
    KafkaGroupRow,
    Leaver,
    MemberReply,
    Sender,
    SyncAnswer,
    SyncRequest,
)
from rumq.kafka.protocol.errors import ErrorCode

NAME_BYTES_MAX = 255
SESSION_SECONDS_MIN, SESSION_SECONDS_MAX = 1.0, 1800.0
REBALANCE_SECONDS_MAX = 3600.0
PROTOCOLS_MAX = 50  # of one member
PENDING_MAX = 1_000  # ids of one group that were told and did not come back
LOOK_SECONDS = 0.05  # between looks at all groups


class GroupBounds(NamedTuple):
    """groups: with members; members: of one group; bytes: of what members say and are assigned. Half of groups and of
    bytes is one user's or one network's"""

    groups: int
    members: int
    bytes: int


class GroupCoordinator:
    def __init__(self, bounds: GroupBounds, new_id: Callable[[str], str], generation: int = 0) -> None:
        """new_id, generation: as of `ConsumerGroup`; a group that was forgotten goes on behind its last one"""
        self._bounds, self._new_id, self._generation = bounds, new_id, generation
        self._groups: dict[KafkaGroupKey, ConsumerGroup] = {}
        self._sizes: dict[KafkaGroupKey, int] = {}
        self._owners: dict[KafkaGroupKey, str] = {}  # the network that a group came from
        self._held = Counter[str]()  # bytes and groups by holder

    def row(self, key: KafkaGroupKey) -> KafkaGroupRow | None:
        """None: it has no members."""
        group = self._groups.get(key)
        return None if group is None else group.row()

    def names(self, user: str) -> list[str]:
        return [key.group for key in self._groups if key.user == user]

    @property
    def keys(self) -> list[KafkaGroupKey]:
        """Of groups with members."""
        return list(self._groups)

    def has_members(self, key: KafkaGroupKey) -> bool:
        return key in self._groups and bool(self._groups[key].members)

    @property
    def count(self) -> int:
        return len(self._groups)

    @property
    def member_count(self) -> int:
        return sum(len(each.members) for each in self._groups.values())

    def join(
        self, key: KafkaGroupKey, network: str, request: JoinRequest, now: float, reply: MemberReply
    ) -> JoinAnswer | None:
        """None: the reply is answered later."""
        if not is_name(key.group):
            return JoinAnswer(ErrorCode.INVALID_GROUP_ID, request.member_id)
        if not SESSION_SECONDS_MIN <= request.session_seconds <= SESSION_SECONDS_MAX:
            return JoinAnswer(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
        if len(request.protocols) > PROTOCOLS_MAX:
            return JoinAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        request = request._replace(rebalance_seconds=min(max(request.rebalance_seconds, 0.0), REBALANCE_SECONDS_MAX))
        group = self._groups.get(key)
        if group is None:
            if request.member_id:
                return JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            if not self._has_room_for_group(key, network):
                return JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED)
            group = ConsumerGroup(key.group, self._new_id, self._generation)
        if not self._has_room(key, network, group, request):
            return JoinAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED, request.member_id)
        answer = group.join(request, now, reply)
        if key not in self._groups and not group.is_gone:
            self._groups[key], self._owners[key], self._sizes[key] = group, network, 0
            for holder in holders_of(key, network):
                self._held[f"groups of {holder}"] += 1
        self._count(key)
        return answer

    def sync(self, key: KafkaGroupKey, request: SyncRequest, now: float, reply: MemberReply) -> SyncAnswer | None:
        """None: the reply is answered later."""
        group = self._groups.get(key)
        if group is None:
            return SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID)
        assigned = sum(map(len, request.assignments.values()))
        if not self._has_bytes(key, self._owners[key], assigned):
            return SyncAnswer(ErrorCode.GROUP_MAX_SIZE_REACHED)
        answer = group.sync(request, now, reply)
        self._count(key)
        return answer

    def heartbeat(self, key: KafkaGroupKey, sender: Sender, now: float) -> ErrorCode:
        group = self._groups.get(key)
        return ErrorCode.UNKNOWN_MEMBER_ID if group is None else group.heartbeat(sender, now)

    def leave(self, key: KafkaGroupKey, leavers: Sequence[Leaver], now: float) -> list[ErrorCode]:
        group = self._groups.get(key)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers)
        errors = group.leave(leavers, now)
        self._count(key)
        return errors

    def may_commit(self, key: KafkaGroupKey, sender: Sender, now: float) -> ErrorCode:
        if not is_name(key.group):
            return ErrorCode.INVALID_GROUP_ID
        group = self._groups.get(key)
        if group is None:
            return ErrorCode.NONE if sender.generation < 0 else ErrorCode.UNKNOWN_MEMBER_ID
        return group.may_commit(sender, now)

    def dismiss(self) -> None:
        """Forget all members, as another node coordinates."""
        groups, self._groups = self._groups, {}
        for each in groups.values():
            each.dismiss()

    @property
    def next_at(self) -> float:
        """When there is something to do; inf: never."""
        return min((each.next_at for each in self._groups.values()), default=math.inf)

    def advance(self, now: float) -> None:
        """Do what is due."""
        for key, group in list(self._groups.items()):
            if group.next_at <= now:
                group.advance(now)
                self._count(key)

    def _count(self, key: KafkaGroupKey) -> None:
        """Its bytes as they are now; it is forgotten when nobody is left."""
        group = self._groups.get(key)
        if group is None:
            return
        holders = holders_of(key, self._owners[key])
        size = 0 if group.is_gone else group.size
        for holder in ("all", *holders):
            self._held[holder] += size - self._sizes[key]
        self._sizes[key] = size
        if group.is_gone:
            self._generation = max(self._generation, group.generation)
            del self._groups[key], self._sizes[key], self._owners[key]
            for holder in holders:
                self._held[f"groups of {holder}"] -= 1
            self._held += Counter()  # what is 0 goes

    def _has_room_for_group(self, key: KafkaGroupKey, network: str) -> bool:
        share = max(1, self._bounds.groups // 2)
        held = max(self._held[f"groups of {holder}"] for holder in holders_of(key, network))
        return len(self._groups) < self._bounds.groups and held < share

    def _has_room(self, key: KafkaGroupKey, network: str, group: ConsumerGroup, request: JoinRequest) -> bool:
        is_member = request.member_id in group.members or request.member_id in group.pending
        if not is_member and (len(group.members) >= self._bounds.members or len(group.pending) >= PENDING_MAX):
            return False
        return self._has_bytes(key, self._owners.get(key, network), request.size)

    def _has_bytes(self, key: KafkaGroupKey, network: str, size: int) -> bool:
        held = max(self._held[holder] for holder in holders_of(key, network))
        return held + size <= self._bounds.bytes // 2 and self._held["all"] + size <= self._bounds.bytes


def holders_of(key: KafkaGroupKey, network: str) -> tuple[str, ...]:
    return (f"network {network}", f"user {key.user}") if key.user else (f"network {network}",)


def is_name(group: str) -> bool:
    return 0 < len(group.encode()) <= NAME_BYTES_MAX
