"""A member of a consumer group: what it asked for, until when it is believed alive, and who waits for an answer."""

from __future__ import annotations

import math

from rumq.kafka.groups.messages import JoinAnswer, JoinedMember, JoinRequest, MemberReply, MemberRow, SyncAnswer


class GroupMember:
    """joining, syncing: who waits for the answer; assignment: of this generation; knows_it: it was told that"""

    def __init__(self, member_id: str, request: JoinRequest, now: float) -> None:
        self.member_id, self.request = member_id, request
        self.joining: MemberReply | None = None
        self.syncing: MemberReply | None = None
        self.assignment = b""
        self.knows_it = False
        self._alive_until = now + request.session_seconds

    @property
    def instance_id(self) -> str | None:
        return self.request.instance_id

    @property
    def size(self) -> int:
        """Bytes."""
        return self.request.size + len(self.assignment)

    def metadata_of(self, protocol: str) -> bytes:
        return next((data for name, data in self.request.protocols if name == protocol), b"")

    @property
    def names(self) -> list[str]:
        """Of its protocols, the best first."""
        return [name for name, _ in self.request.protocols]

    def heard(self, now: float) -> None:
        self._alive_until = now + self.request.session_seconds

    @property
    def expires_at(self) -> float:
        """Who waits for an answer need not say that it is alive."""
        return math.inf if self.joining is not None or self.syncing is not None else self._alive_until

    def answer_join(self, answer: JoinAnswer) -> None:
        if self.joining is not None:
            self.joining.answer(answer)
            self.joining = None

    def answer_sync(self, answer: SyncAnswer) -> None:
        if self.syncing is not None:
            self.syncing.answer(answer)
            self.syncing = None

    def joined(self, protocol: str) -> JoinedMember:
        return JoinedMember(self.member_id, self.instance_id, self.metadata_of(protocol))

    def row(self, protocol: str) -> MemberRow:
        request = self.request
        return MemberRow(
            self.member_id, self.instance_id, request.client_id, request.host, self.metadata_of(protocol),
            self.assignment,
        )  # fmt: skip
