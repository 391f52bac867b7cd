"""What a coordinator answers, case by case, as Kafka's does; and its bounds."""

from __future__ import annotations

from typing import Any

import pytest

from rumq.kafka.groups.coordinator import NAME_BYTES_MAX, GroupBounds, GroupCoordinator
from rumq.kafka.groups.group import GATHER_SECONDS
from rumq.kafka.groups.member import GroupMember
from rumq.kafka.groups.messages import JoinAnswer, KafkaGroupKey, Leaver, Sender, SyncRequest
from rumq.kafka.protocol.errors import ErrorCode
from tests.kafka.groups.group_clients import BOUNDS, KEY, NETWORK, REBALANCE, SESSION, Box, coordinator, request

OTHERS = "198.51.100.1"


class Site:
    """A coordinator at a time. stable: a group with members, of whom each has an assignment that names it"""

    def __init__(self, bounds: GroupBounds | None = None) -> None:
        self.groups: GroupCoordinator = coordinator(bounds) if bounds is not None else coordinator()
        self.now = 0.0

    def join(self, member_id: str = "", key: KafkaGroupKey = KEY, network: str = NETWORK, **fields: Any) -> Box:
        box = Box()
        asked = request(member_id, **({"names_first": False} | fields))
        if (answer := self.groups.join(key, network, asked, self.now, box)) is not None:
            box.answer(answer)
        return box

    def error(self, box: Box) -> ErrorCode:
        return box.found[-1].error  # type: ignore[no-any-return]

    def sync(self, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, **fields: Any) -> Box:
        box = Box()
        asked = SyncRequest(member_id, None, generation, assignments or {})._replace(**fields)
        if (answer := self.groups.sync(KEY, asked, self.now, box)) is not None:
            box.answer(answer)
        return box

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.groups.advance(self.now)

    def stable(self, *instances: str | None) -> list[JoinAnswer]:
        boxes = [self.join(instance_id=each) for each in instances]
        self.wait(GATHER_SECONDS)
        answers: list[JoinAnswer] = [box.found[0] for box in boxes]
        assigned = {each.member_id: each.member_id.encode() for each in answers}
        synced = [self.sync(each.member_id, each.generation, assigned, instance_id=instance)
                  for each, instance in reversed(list(zip(answers, instances, strict=True)))]  # fmt: skip
        assert [box.found[0].assignment for box in reversed(synced)] == [*assigned.values()]
        return answers

    def commit(self, answer: JoinAnswer, instance: str | None = None) -> ErrorCode:
        return self.groups.may_commit(KEY, Sender(answer.member_id, instance, answer.generation), self.now)

    def beat(self, answer: JoinAnswer, instance: str | None = None) -> ErrorCode:
        return self.groups.heartbeat(KEY, Sender(answer.member_id, instance, answer.generation), self.now)


def test_members_that_come_together_are_assigned_once() -> None:
    site = Site()
    boxes = []
    for _ in range(3):
        boxes.append(site.join())
        site.wait(0.8 * GATHER_SECONDS)
    assert not any(box.found for box in boxes)
    site.wait(GATHER_SECONDS)
    answers = [box.found[0] for box in boxes]
    assert [each.generation for each in answers] == [1, 1, 1]
    assert [len(each.members) for each in answers] == [3, 0, 0] and len({each.leader for each in answers}) == 1


def test_a_member_without_an_id_is_told_one_first() -> None:
    site = Site()
    told = site.join(names_first=True).found[0]
    assert told.error == ErrorCode.MEMBER_ID_REQUIRED and told.member_id
    assert site.beat(told) == ErrorCode.UNKNOWN_MEMBER_ID, "it is no member yet"
    box = site.join(told.member_id, names_first=True)
    site.wait(GATHER_SECONDS)
    assert box.found[0].member_id == told.member_id and box.found[0].error == ErrorCode.NONE


def test_ids_that_nobody_comes_back_with_are_forgotten() -> None:
    site = Site()
    site.join(names_first=True)
    assert site.groups.count == 1
    site.wait(SESSION + 1)
    assert site.groups.count == 0


def test_who_leaves_makes_the_others_join_again() -> None:
    site = Site()
    one, two = site.stable(None, None)
    assert site.groups.leave(KEY, [Leaver(one.member_id, None)], site.now) == [ErrorCode.NONE]
    assert site.beat(two) == ErrorCode.REBALANCE_IN_PROGRESS
    assert site.commit(two) == ErrorCode.NONE, "of what it has read it may say so until it joins"
    again = site.join(two.member_id).found[0]
    assert again.generation == 2 and again.leader == two.member_id
    assert site.commit(two) == ErrorCode.ILLEGAL_GENERATION
    assert site.beat(one) == ErrorCode.UNKNOWN_MEMBER_ID


def test_many_that_leave_at_once_are_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool names them all in one request: each is looked at a few times, not once for each other."""
    site = Site(BOUNDS._replace(members=200, bytes=1 << 24))
    stay, *others = site.stable(None, *(f"i{number}" for number in range(99)), *[None] * 99)
    looks: list[str] = []

    def looked(member: GroupMember) -> Any:
        looks.append(member.member_id)
        return member.request.instance_id

    monkeypatch.setattr(GroupMember, "instance_id", property(looked))
    monkeypatch.setattr(GroupMember, "size", property(lambda member: len(str(looked(member)))))
    leavers = [Leaver("" if number < 99 else each.member_id, f"i{number}" if number < 99 else None)
               for number, each in enumerate(others)]  # fmt: skip
    assert site.groups.leave(KEY, leavers, site.now) == [ErrorCode.NONE] * 198
    assert len(looks) < 5 * 199 and site.beat(stay) == ErrorCode.REBALANCE_IN_PROGRESS
    assert site.join(stay.member_id).found[0].generation == 2, "they join again once"


def test_of_several_that_leave_each_is_told_what_became_of_it() -> None:
    site = Site()
    static, other = site.stable("i", None)
    pending = site.join(names_first=True).found[0]
    leavers = [
        (Leaver("invented", None), ErrorCode.UNKNOWN_MEMBER_ID),
        (Leaver("", "nobody's"), ErrorCode.UNKNOWN_MEMBER_ID),
        (Leaver("another's", "i"), ErrorCode.FENCED_INSTANCE_ID),
        (Leaver(static.member_id, "i"), ErrorCode.NONE),
        (Leaver("", "i"), ErrorCode.UNKNOWN_MEMBER_ID),
        (Leaver(pending.member_id, None), ErrorCode.NONE),
        (Leaver(pending.member_id, None), ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    assert site.groups.leave(KEY, [leaver for leaver, _ in leavers], site.now) == [error for _, error in leavers]
    again = site.join(other.member_id).found[0]
    assert again.generation == 2 and len(again.members) == 1


def test_who_does_not_join_again_in_time_is_out() -> None:
    site = Site()
    one, two = site.stable(None, None)
    box = site.join()
    assert site.beat(one) == site.beat(two) == ErrorCode.REBALANCE_IN_PROGRESS
    again = site.join(one.member_id)
    site.wait(REBALANCE + 1)
    assert {each.member_id for each in again.found[0].members} == {one.member_id, box.found[0].member_id}
    assert site.commit(two) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_leader_that_does_not_assign_is_out() -> None:
    site = Site()
    boxes = [site.join(), site.join()]
    site.wait(GATHER_SECONDS)
    leader, other = (box.found[0] for box in boxes)
    waiting = site.sync(other.member_id, 1)
    assert not waiting.found
    site.wait(REBALANCE + 1)
    assert site.error(waiting) == ErrorCode.REBALANCE_IN_PROGRESS
    assert site.beat(leader) == ErrorCode.UNKNOWN_MEMBER_ID
    assert site.join(other.member_id).found[0].leader == other.member_id


def test_who_beats_and_does_not_ask_for_its_assignment_is_out() -> None:
    """Its partitions would be read by nobody."""
    site = Site()
    boxes = [site.join(), site.join()]
    site.wait(GATHER_SECONDS)
    leader, other = (box.found[0] for box in boxes)
    site.sync(leader.member_id, 1, {other.member_id: b"some"})
    assert site.beat(other) == ErrorCode.NONE
    site.wait(REBALANCE + 1)
    assert site.beat(other) == ErrorCode.UNKNOWN_MEMBER_ID and site.beat(leader) == ErrorCode.REBALANCE_IN_PROGRESS
    site = Site()
    known = site.stable(None, None)
    site.wait(REBALANCE + 1)
    assert [site.beat(each) for each in known] == [ErrorCode.NONE] * 2


def test_who_is_silent_is_out() -> None:
    site = Site()
    one, two = site.stable(None, None)
    site.wait(SESSION - 1)
    assert site.beat(one) == ErrorCode.NONE
    site.wait(2)
    assert site.beat(one) == ErrorCode.REBALANCE_IN_PROGRESS and site.beat(two) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_that_is_started_again_has_its_place_and_nobody_joins_again() -> None:
    site = Site()
    leader, other = site.stable("a", "b")
    box = site.join(instance_id="b")
    again = box.found[0]
    assert (again.error, again.generation, again.members) == (ErrorCode.NONE, 1, ())
    assert again.member_id != other.member_id
    assert site.sync(again.member_id, 1, instance_id="b").found[0].assignment == other.member_id.encode()
    assert site.beat(leader, "a") == ErrorCode.NONE
    assert site.beat(other, "b") == site.commit(other, "b") == ErrorCode.FENCED_INSTANCE_ID
    assert site.error(site.join(other.member_id, instance_id="b")) == ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("may_skip", [False, True])
def test_a_static_leader_that_is_started_again_assigns_nothing_anew(may_skip: bool) -> None:
    site = Site()
    leader, _ = site.stable("a", "b")
    again = site.join(instance_id="a", may_skip=may_skip).found[0]
    assert again.skips_assignment == may_skip and (again.leader == again.member_id) == may_skip
    assert len(again.members) == (2 if may_skip else 0)
    assert site.sync(again.member_id, 1, instance_id="a").found[0].assignment == leader.member_id.encode()


def test_a_static_member_that_is_away_keeps_its_place_until_its_session_ends() -> None:
    site = Site()
    _, away = site.stable("a", "b")
    boxes = [site.join(instance_id="a", protocols=(("range", b"other"),)), site.join()]
    site.wait(REBALANCE + 1)
    [leader] = [box.found[0] for box in boxes if box.found[0].members]
    assert {each.instance_id for each in leader.members} == {"a", "b", None}
    assert site.commit(away, "b") == ErrorCode.ILLEGAL_GENERATION, "it has missed a generation"
    site.wait(SESSION)
    assert site.commit(away, "b") == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_answer_that_was_lost_is_given_again() -> None:
    site = Site()
    boxes = [site.join(), site.join()]
    site.wait(GATHER_SECONDS)
    leader, other = (box.found[0] for box in boxes)
    assert site.join(other.member_id).found[0] == other
    assert site.join(leader.member_id).found[0] == leader
    first = site.sync(other.member_id, 1)
    second = site.sync(other.member_id, 1)
    assert site.error(first) == ErrorCode.REBALANCE_IN_PROGRESS
    site.sync(leader.member_id, 1, {other.member_id: b"mine"})
    assert second.found[0].assignment == b"mine"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (("sticky", b""),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": tuple((f"p{each}", b"") for each in range(60))}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_seconds": 0.5}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_seconds": 4000.0}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "invented"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "invented", "instance_id": "b"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "invented", "instance_id": "a"}, ErrorCode.FENCED_INSTANCE_ID),
    ],
)
def test_joins_that_are_refused(fields: dict[str, Any], error: ErrorCode) -> None:
    site = Site()
    [member] = site.stable("a")
    assert site.error(site.join(**fields)) == error
    assert site.beat(member, "a") == ErrorCode.NONE, "nobody notices"


@pytest.mark.parametrize("name", ["", "n" * (NAME_BYTES_MAX + 1), "ü" * NAME_BYTES_MAX])
def test_names_that_are_refused(name: str) -> None:
    site = Site()
    key = KafkaGroupKey("", name)
    assert site.error(site.join(key=key)) == ErrorCode.INVALID_GROUP_ID
    assert site.groups.may_commit(key, Sender("", None, -1), 0.0) == ErrorCode.INVALID_GROUP_ID


def test_what_others_may_say_of_a_group() -> None:
    site = Site()
    outsider = Sender("", None, -1)
    assert site.groups.may_commit(KEY, outsider, 0.0) == ErrorCode.NONE, "nobody is in it: a consumer without a group"
    [member] = site.stable(None)
    assert site.groups.may_commit(KEY, outsider, 0.0) == ErrorCode.UNKNOWN_MEMBER_ID
    for sender in (Sender("x", None, 1), Sender("x", "i", 1)):
        assert site.groups.may_commit(KEY, sender, 0.0) == ErrorCode.UNKNOWN_MEMBER_ID
        assert site.groups.heartbeat(KEY, sender, 0.0) == ErrorCode.UNKNOWN_MEMBER_ID
        assert site.groups.leave(KEY, [Leaver(*sender[:2])], 0.0) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert site.error(site.sync(member.member_id, 7)) == ErrorCode.ILLEGAL_GENERATION
    assert site.error(site.sync(member.member_id, 1, protocol="x")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert site.groups.heartbeat(KafkaGroupKey("ben", KEY.group), Sender(member.member_id, None, 1), 0.0) == (
        ErrorCode.UNKNOWN_MEMBER_ID
    ), "a group of another user's is another group"


def test_groups_are_bounded_for_a_user_and_a_network() -> None:
    site = Site(GroupBounds(6, 8, 1 << 20))
    for number in range(3):
        assert not site.join(key=KafkaGroupKey("anna", f"g{number}")).found
    assert site.error(site.join(key=KafkaGroupKey("anna", "g3"), network=OTHERS)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert site.error(site.join(key=KafkaGroupKey("ben", "g0"))) == ErrorCode.GROUP_MAX_SIZE_REACHED, "the same network"
    assert not site.join(key=KafkaGroupKey("ben", "g0"), network=OTHERS).found
    site.wait(GATHER_SECONDS)
    site.wait(SESSION + 1)
    assert site.groups.count == 0 and not +site.groups._held
    assert not site.join(key=KafkaGroupKey("anna", "g3")).found


def test_ids_that_were_told_are_bounded() -> None:
    site = Site(GroupBounds(6, 3, 40_000))
    errors = [site.error(site.join(names_first=True)) for _ in range(100)]
    assert 20 < errors.count(ErrorCode.MEMBER_ID_REQUIRED) < 60 and errors[-1] == ErrorCode.GROUP_MAX_SIZE_REACHED
    site.wait(SESSION + 1)
    assert site.groups.count == 0 and not +site.groups._held


def test_members_and_their_bytes_are_bounded() -> None:
    site = Site(GroupBounds(6, 3, 40_000))
    members = site.stable(None, None, None)
    assert site.error(site.join()) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert site.beat(members[0]) == ErrorCode.NONE
    other = KafkaGroupKey("anna", "other")
    large = (("range", b"m" * 10_000),)
    assert site.error(site.join(key=other, protocols=large)) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert site.groups.names("anna") == [KEY.group] and site.groups.names("ben") == []
