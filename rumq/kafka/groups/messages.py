"""What the members of a group ask, and what they are answered. No bytes, no sockets."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from rumq.kafka.protocol.errors import ErrorCode

MEMBER_BYTES = 4096


class KafkaGroupKey(NamedTuple):
    """A group belongs to a user; \"\": of all who come without a name."""

    user: str
    group: str


class JoinRequest(NamedTuple):
    """protocols: (name, metadata), the one it likes best first; instance_id: of a static member

    names_first: a client without a member id is told one, and comes again with it (JoinGroup 4)
    may_skip: a leader can be told that its assignment is known (JoinGroup 9)"""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    session_seconds: float
    rebalance_seconds: float
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    names_first: bool = True
    may_skip: bool = False

    @property
    def size(self) -> int:
        """Bytes that a member takes, about: what it costs to look after it counts as well."""
        texts = (self.client_id, self.host, self.protocol_type, self.instance_id or "")
        return MEMBER_BYTES + sum(map(len, texts)) + sum(len(name) + len(data) for name, data in self.protocols)


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(NamedTuple):
    """members: for the leader, who assigns; skips_assignment: it need not"""

    error: ErrorCode
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    skips_assignment: bool = False


class SyncRequest(NamedTuple):
    """assignments: by member id, of a leader; protocol_type, protocol: None: not said"""

    member_id: str
    instance_id: str | None
    generation: int
    assignments: dict[str, bytes]
    protocol_type: str | None = None
    protocol: str | None = None


class SyncAnswer(NamedTuple):
    error: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol: str | None = None


class Sender(NamedTuple):
    """Of a heartbeat or a commit. generation: negative: of none"""

    member_id: str
    instance_id: str | None
    generation: int


class Leaver(NamedTuple):
    """member_id: \"\": that of the static member"""

    member_id: str
    instance_id: str | None


class MemberReply(Protocol):
    """Of somebody who waits."""

    def answer(self, answer: Any) -> None: ...


class MemberRow(NamedTuple):
    """For tools."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    metadata: bytes
    assignment: bytes


class KafkaGroupRow(NamedTuple):
    """For tools. state: by Kafka's names"""

    group: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberRow, ...] = ()
