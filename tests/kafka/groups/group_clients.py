"""Clients of a consumer group as a model: they join, sync, beat and commit by the answers alone, and some die."""

from __future__ import annotations

import json
from typing import Any

from rumq.kafka.groups.coordinator import GroupBounds, GroupCoordinator
from rumq.kafka.groups.messages import JoinAnswer, JoinRequest, KafkaGroupKey, Leaver, Sender, SyncAnswer, SyncRequest
from rumq.kafka.protocol.errors import ErrorCode

KEY = KafkaGroupKey("anna", "readers")
NETWORK = "192.0.2.1"
PARTITIONS = 5
SESSION, REBALANCE = 30.0, 10.0
BOUNDS = GroupBounds(10, 8, 1 << 20)
LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
AGAIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class Box:
    """A reply that is looked into."""

    def __init__(self) -> None:
        self.found: list[Any] = []

    def answer(self, answer: Any) -> None:
        self.found.append(answer)


def coordinator(bounds: GroupBounds = BOUNDS) -> GroupCoordinator:
    count = iter(range(1 << 40))
    return GroupCoordinator(bounds, lambda client_id: f"{client_id}-{next(count)}")


def request(member_id: str = "", **fields: Any) -> JoinRequest:
    made = JoinRequest(
        member_id, None, "c", "192.0.2.1", SESSION, REBALANCE, "consumer", (("range", b"m"), ("robin", b"m"))
    )
    return made._replace(**fields)


def dealt(members: list[str]) -> dict[str, bytes]:
    """A leader's assignment."""
    return {
        member: json.dumps([each for each in range(PARTITIONS) if each % len(members) == number]).encode()
        for number, member in enumerate(members)
    }


class GroupClient:
    """One consumer. owned: what it reads now; generation: -1: it is no member"""

    def __init__(self, groups: GroupCoordinator, name: str, instance_id: str | None = None) -> None:
        self._groups, self._name, self.instance_id = groups, name, instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: list[int] = []
        self.is_fenced = False
        self._joining: Box | None = None
        self._syncing: Box | None = None
        self._to_assign: dict[str, bytes] | None = None
        self.told: list[tuple[int, str, list[int]]] = []  # generation, who, what it was assigned

    @property
    def sender(self) -> Sender:
        return Sender(self.member_id, self.instance_id, self.generation)

    @property
    def is_stable(self) -> bool:
        return self.generation >= 0 and self._joining is None and self._syncing is None and self._to_assign is None

    def step(self, now: float) -> None:
        """What a client does next, by what it was answered so far."""
        if self.is_fenced:
            return
        if self._joining is not None:
            if self._joining.found:
                self._joined(self._joining.found[-1], now)
        elif self._syncing is not None:
            if self._syncing.found:
                self._synced(self._syncing.found[-1])
        elif self.generation < 0:
            self._join(now)
        elif self._to_assign is not None:
            self._sync(self._to_assign, now)
        else:
            self._failed(self._groups.heartbeat(KEY, self.sender, now))

    def loses_connection(self) -> None:
        """An answer that it waits for never comes."""
        self._joining = self._syncing = None
        self._rejoin()

    def loses_answers(self) -> None:
        """Those that it waits for alone: what it owns it goes on with."""
        if self._joining is not None or self._syncing is not None:
            self.loses_connection()

    def leave(self, now: float) -> None:
        self._groups.leave(KEY, [Leaver(self.member_id, self.instance_id)], now)
        self._forget()

    def may_commit(self, now: float) -> bool:
        return self.generation >= 0 and self._groups.may_commit(KEY, self.sender, now) == ErrorCode.NONE

    def _join(self, now: float) -> None:
        box = Box()
        asked = request(self.member_id, client_id=self._name, instance_id=self.instance_id)
        self._joining = box
        if (answer := self._groups.join(KEY, NETWORK, asked, now, box)) is not None:
            self._joined(answer, now)

    def _joined(self, answer: JoinAnswer, now: float) -> None:
        self._joining = None
        if answer.error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif answer.error == ErrorCode.NONE:
            self.member_id, self.generation = answer.member_id, answer.generation
            self._to_assign = dealt([each.member_id for each in answer.members]) if answer.members else {}
        else:
            self._failed(answer.error)

    def _sync(self, assignments: dict[str, bytes], now: float) -> None:
        self._to_assign, self._syncing = None, Box()
        asked = SyncRequest(self.member_id, self.instance_id, self.generation, assignments)
        if (told := self._groups.sync(KEY, asked, now, self._syncing)) is not None:
            self._synced(told)

    def _synced(self, answer: SyncAnswer) -> None:
        self._syncing = None
        if answer.error == ErrorCode.NONE:
            self.owned = json.loads(answer.assignment or b"[]")
            self.told.append((self.generation, self.instance_id or self.member_id, self.owned))
        else:
            self._failed(answer.error)

    def _failed(self, error: ErrorCode) -> None:
        if error == ErrorCode.FENCED_INSTANCE_ID:
            self.is_fenced = True
        if error in LOST:
            self._forget()
        elif error in AGAIN:
            self._rejoin()

    def _rejoin(self) -> None:
        self.generation, self.owned, self._to_assign = -1, [], None

    def _forget(self) -> None:
        self.member_id = ""
        self._rejoin()
