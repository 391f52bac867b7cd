"""One consumer group: members join, a leader assigns, and whoever leaves or is silent makes them join again.

The classic protocol of https://kafka.apache.org/protocol, error for error as Kafka's coordinator. Time is an argument;
who waits is answered through a `MemberReply`. No sockets, no files."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum

from rumq.kafka.groups.member import GroupMember
from rumq.kafka.groups.messages import (
    JoinAnswer,
    JoinedMember,
    JoinRequest,
    KafkaGroupRow,
    Leaver,
    MemberReply,
    Sender,
    SyncAnswer,
    SyncRequest,
)
from rumq.kafka.protocol.errors import ErrorCode

PENDING_BYTES = 512  # of an id that was told
GATHER_SECONDS = 0.3  # that an empty group waits for more members, so that they are assigned once, not one by one


class GroupState(Enum):
    """Values: by Kafka's names."""

    EMPTY = "Empty"
    JOINING = "PreparingRebalance"
    ASSIGNING = "CompletingRebalance"
    STABLE = "Stable"


class ConsumerGroup:
    """members: by id, the one that is there longest first; pending: ids that were told, until when they are kept"""

    def __init__(self, group: str, new_id: Callable[[str], str], generation: int = 0) -> None:
        """new_id: a member id that nobody has had, of a client id; generation: behind which its own begin"""
        self.group, self._new_id = group, new_id
        self.state = GroupState.EMPTY
        self.generation = generation
        self.protocol_type = self.protocol = self.leader = ""
        self.members: dict[str, GroupMember] = {}
        self.pending: dict[str, float] = {}
        self._joined_by = self._gathered_by = self._assigned_by = math.inf

    @property
    def is_gone(self) -> bool:
        return not self.members and not self.pending

    @property
    def size(self) -> int:
        """Bytes."""
        return PENDING_BYTES * len(self.pending) + sum(each.size for each in self.members.values())

    def row(self) -> KafkaGroupRow:
        is_known = self.state in (GroupState.STABLE, GroupState.ASSIGNING)
        protocol = self.protocol if is_known else ""
        members = tuple(each.row(protocol) for each in self.members.values())
        return KafkaGroupRow(self.group, self.state.value, self.protocol_type, protocol, members)

    # What members ask

    def join(self, request: JoinRequest, now: float, reply: MemberReply) -> JoinAnswer | None:
        """None: the reply is answered later."""
        if not request.protocol_type or not request.protocols or not self._has_common_protocol(request):
            return JoinAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        if not request.member_id:
            return self._join_new(request, now, reply)
        if (error := self._fault_of_id(request.member_id, request.instance_id)) != ErrorCode.NONE:
            return JoinAnswer(error, request.member_id)
        if request.member_id in self.pending:
            del self.pending[request.member_id]
            return self._add(request.member_id, request, now, reply)
        return self._join_again(self.members[request.member_id], request, now, reply)

    def sync(self, request: SyncRequest, now: float, reply: MemberReply) -> SyncAnswer | None:
        """None: the reply is answered later."""
        error = self._fault_of(Sender(request.member_id, request.instance_id, request.generation))
        if error != ErrorCode.NONE:
            return SyncAnswer(error)
        if request.protocol_type not in (None, self.protocol_type) or request.protocol not in (None, self.protocol):
            return SyncAnswer(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if self.state == GroupState.JOINING:
            return SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS)
        member = self.members[request.member_id]
        member.heard(now)
        if self.state == GroupState.STABLE:
            answer = self._assigned(member)
            self._know_all()
            return answer
        member.answer_sync(SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))  # it asks again on another connection
        member.syncing = reply
        if member.member_id == self.leader:
            self._assign(request.assignments, now)
        return None

    def heartbeat(self, sender: Sender, now: float) -> ErrorCode:
        if (error := self._fault_of(sender)) != ErrorCode.NONE:
            return error
        self.members[sender.member_id].heard(now)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state == GroupState.JOINING else ErrorCode.NONE

    def leave(self, leavers: Sequence[Leaver], now: float) -> list[ErrorCode]:
        """What becomes of each; the others join again once. cost: linear in members and leavers"""
        static = {each.instance_id: each for each in self.members.values() if each.instance_id is not None}
        gone: dict[str, GroupMember] = {}
        errors: list[ErrorCode] = []
        pending_before = len(self.pending)
        for member_id, instance_id in leavers:
            found = self.members.get(member_id) if instance_id is None else static.get(instance_id)
            if found is not None and found.member_id not in gone:
                if member_id in (found.member_id, ""):
                    gone[found.member_id] = found
                    errors.append(ErrorCode.NONE)
                else:
                    errors.append(ErrorCode.FENCED_INSTANCE_ID)
            elif instance_id is None and self.pending.pop(member_id, None) is not None:
                errors.append(ErrorCode.NONE)
            else:
                errors.append(ErrorCode.UNKNOWN_MEMBER_ID)
        self._remove(list(gone.values()), now)
        if len(self.pending) < pending_before:
            self._complete_if_all_are_here(now)
        return errors

    def may_commit(self, sender: Sender, now: float) -> ErrorCode:
        if sender.generation < 0 and not self.members:
            return ErrorCode.NONE  # of a consumer that assigns itself, or a tool
        if sender.generation < 0 and not sender.member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if (error := self._fault_of(sender)) != ErrorCode.NONE:
            return error
        self.members[sender.member_id].heard(now)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state == GroupState.ASSIGNING else ErrorCode.NONE

    # Time

    @property
    def next_at(self) -> float:
        """When there is something to do; inf: never."""
        alive = min((each.expires_at for each in self.members.values()), default=math.inf)
        return min(alive, self._deadline, self._assigned_by, *self.pending.values(), math.inf)

    @property
    def _deadline(self) -> float:
        return min(self._joined_by, self._gathered_by)

    def advance(self, now: float) -> None:
        """Do what is due: the silent go, and who waits long enough goes on without the others."""
        for each in [member_id for member_id, until in self.pending.items() if until <= now]:
            del self.pending[each]
        if silent := [each for each in self.members.values() if each.expires_at <= now]:
            self._remove(silent, now)
        if self.state == GroupState.JOINING:
            self._complete_if_all_are_here(now)
            if self._deadline <= now:
                self._complete_join(now)
        elif self._assigned_by <= now:
            # The leader did not assign, or who beats does not ask for what it is to read.
            late = [self.members[self.leader]] if self.state == GroupState.ASSIGNING else self._late
            self._assigned_by = math.inf
            self._remove(late, now)

    # Joining

    def _has_common_protocol(self, request: JoinRequest) -> bool:
        others = [each for each in self.members.values() if each.member_id != request.member_id]
        if request.instance_id is not None:
            others = [each for each in others if each.instance_id != request.instance_id]
        if not others:
            return True
        common = set.intersection(*(set(each.names) for each in others))
        return request.protocol_type == self.protocol_type and not common.isdisjoint(n for n, _ in request.protocols)

    def _join_new(self, request: JoinRequest, now: float, reply: MemberReply) -> JoinAnswer | None:
        member_id = self._new_id(request.instance_id or request.client_id)
        if request.instance_id is not None and (old := self._static(request.instance_id)) is not None:
            return self._replace(old, member_id, request, now, reply)
        if request.instance_id is None and request.names_first:
            self.pending[member_id] = now + request.session_seconds
            return JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return self._add(member_id, request, now, reply)

    def _add(self, member_id: str, request: JoinRequest, now: float, reply: MemberReply) -> JoinAnswer | None:
        member = GroupMember(member_id, request, now)
        self.members[member_id] = member
        member.joining = reply
        self.protocol_type = request.protocol_type
        self._begin_join(now)
        self._complete_if_all_are_here(now)
        return None

    def _replace(
        self, old: GroupMember, member_id: str, request: JoinRequest, now: float, reply: MemberReply
    ) -> JoinAnswer | None:
        """A static member that was started again: it has its place, and who had it before is told so."""
        old.answer_join(JoinAnswer(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
        old.answer_sync(SyncAnswer(ErrorCode.FENCED_INSTANCE_ID))
        member = GroupMember(member_id, request, now)
        member.assignment, member.knows_it = old.assignment, True
        was_leader = old.member_id == self.leader
        # In its place, as the oldest member leads.
        self.members = {
            (member_id if each is old else each.member_id): (member if each is old else each)
            for each in self.members.values()
        }
        if self.state == GroupState.STABLE and old.request.protocols == request.protocols:
            if was_leader:
                self.leader = member_id
            skips = was_leader and request.may_skip
            # A leader that cannot skip is told of the one before, lest it assigns.
            leader = old.member_id if was_leader and not skips else self.leader
            return self._join_answer(member, leader=leader, skips=skips)
        member.joining = reply
        self._begin_join(now)
        self._complete_if_all_are_here(now)
        return None

    def _join_again(
        self, member: GroupMember, request: JoinRequest, now: float, reply: MemberReply
    ) -> JoinAnswer | None:
        member.heard(now)
        is_same = member.request.protocols == request.protocols
        is_leader = member.member_id == self.leader
        if is_same and (self.state == GroupState.ASSIGNING or (self.state == GroupState.STABLE and not is_leader)):
            return self._join_answer(member)  # the answer was lost
        member.request = request
        member.answer_join(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))  # on a connection before
        member.joining = reply
        self._begin_join(now)
        self._complete_if_all_are_here(now)
        return None

    def _join_answer(self, member: GroupMember, *, leader: str = "", skips: bool = False) -> JoinAnswer:
        leader = leader or self.leader
        members: tuple[JoinedMember, ...] = ()
        if member.member_id == leader:
            members = tuple(each.joined(self.protocol) for each in self.members.values())
        return JoinAnswer(
            ErrorCode.NONE, member.member_id, self.generation, self.protocol_type, self.protocol, leader, members,
            skips,
        )  # fmt: skip

    def _begin_join(self, now: float) -> None:
        """Everybody is to join again."""
        if self.state == GroupState.JOINING:
            if self._gathered_by < math.inf:
                self._gathered_by = now + GATHER_SECONDS
            return
        for each in self.members.values():
            each.assignment = b""
            if each.syncing is not None:
                each.answer_sync(SyncAnswer(ErrorCode.REBALANCE_IN_PROGRESS))
                each.heard(now)
        self._gathered_by = now + GATHER_SECONDS if self.state == GroupState.EMPTY else math.inf
        self._joined_by = now + max(each.request.rebalance_seconds for each in self.members.values())
        self._assigned_by = math.inf
        self.state = GroupState.JOINING

    def _complete_if_all_are_here(self, now: float) -> None:
        if self.state != GroupState.JOINING or self.pending or self._gathered_by < math.inf:
            return
        if all(each.joining is not None for each in self.members.values()):
            self._complete_join(now)

    def _complete_join(self, now: float) -> None:
        """Who has not come is no member any more, but for static ones, which are believed until their session ends."""
        for each in [each for each in self.members.values() if each.joining is None and each.instance_id is None]:
            del self.members[each.member_id]
        self._joined_by = self._gathered_by = math.inf
        here = [each for each in self.members.values() if each.joining is not None]
        if not here:
            if self.members:  # static ones alone, and none of them is back
                self._joined_by = now + max(each.request.rebalance_seconds for each in self.members.values())
            else:
                self._become_empty()
            return
        self.generation += 1
        self.protocol = self._choose()
        if self.leader not in (each.member_id for each in here):
            self.leader = here[0].member_id
        self.state = GroupState.ASSIGNING
        self._assigned_by = now + max(each.request.rebalance_seconds for each in here)
        for each in here:
            each.heard(now)
            each.knows_it = False
            each.answer_join(self._join_answer(each))

    def _become_empty(self) -> None:
        self.state = GroupState.EMPTY
        self.generation += 1
        self.protocol = self.leader = self.protocol_type = ""
        self._joined_by = self._gathered_by = self._assigned_by = math.inf

    def _choose(self) -> str:
        """The protocol that most like best, of those that all have."""
        common = set.intersection(*(set(each.names) for each in self.members.values()))
        votes = [next(name for name in each.names if name in common) for each in self.members.values()]
        return max(sorted(common), key=votes.count)

    def dismiss(self) -> None:
        """Another node coordinates: whoever waits asks there."""
        for each in self.members.values():
            each.answer_join(JoinAnswer(ErrorCode.NOT_COORDINATOR, each.member_id))
            each.answer_sync(SyncAnswer(ErrorCode.NOT_COORDINATOR))

    # Assigning

    def _assign(self, assignments: dict[str, bytes], now: float) -> None:
        self.state = GroupState.STABLE
        for each in self.members.values():
            each.assignment = assignments.get(each.member_id, b"")
            if each.syncing is not None:
                each.heard(now)
                each.answer_sync(self._assigned(each))
        self._know_all()

    @property
    def _late(self) -> list[GroupMember]:
        """Who joined this generation and does not know its assignment."""
        return [each for each in self.members.values() if not each.knows_it]

    def _know_all(self) -> None:
        if not self._late:
            self._assigned_by = math.inf

    def _assigned(self, member: GroupMember) -> SyncAnswer:
        member.knows_it = True
        return SyncAnswer(ErrorCode.NONE, member.assignment, self.protocol_type, self.protocol)

    # Who is there

    def _static(self, instance_id: str) -> GroupMember | None:
        return next((each for each in self.members.values() if each.instance_id == instance_id), None)

    def _fault_of_id(self, member_id: str, instance_id: str | None) -> ErrorCode:
        if instance_id is not None:
            known = self._static(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            return ErrorCode.NONE if known.member_id == member_id else ErrorCode.FENCED_INSTANCE_ID
        is_known = member_id in self.members or member_id in self.pending
        return ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_MEMBER_ID

    def _fault_of(self, sender: Sender) -> ErrorCode:
        error = self._fault_of_id(sender.member_id, sender.instance_id)
        if error == ErrorCode.NONE and sender.member_id not in self.members:
            return ErrorCode.UNKNOWN_MEMBER_ID  # it is yet to join
        if error == ErrorCode.NONE and sender.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def _remove(self, gone: list[GroupMember], now: float) -> None:
        for each in gone:
            del self.members[each.member_id]
            each.answer_join(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, each.member_id))
            each.answer_sync(SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
        if not gone:
            return
        if not self.members:
            if self.state != GroupState.EMPTY:
                self._become_empty()
        elif self.state == GroupState.JOINING:
            self._complete_if_all_are_here(now)
        else:
            self._begin_join(now)
