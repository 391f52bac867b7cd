"""What the operator does to groups: moved within what is kept, deleted, and never under their members."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rumq.admin import kafka_groups as k
from rumq.kafka.reports.group_actions import act
from tests.kafka.reports.test_group_report import BOUNDS, END, commit, groups, lag, read, take
from tests.kafka.served import Served, served
from tests.kafka.test_group_server import committed
from tests.kafka.wire_client import WireClient


def reset(here: Served, **asked: Any) -> k.KafkaReply:
    request = msgspec.convert({"group": "g", "topic": "main", **asked}, k.ResetGroup)
    return here.on_loop(act, here.server.door, request)  # type: ignore[no-any-return]


def delete(here: Served, group: str, user: str = "") -> k.KafkaReply:
    return here.on_loop(act, here.server.door, k.DeleteGroup(group=group, user=user))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("to", "offset"), [("earliest", 0), ("latest", END), ("17", 17), (str(END + 9), END)], ids=lambda each: str(each)
)
def test_a_group_is_moved_within_what_is_kept(to: str, offset: int, root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        take(here, commit("", "g", 250), commit("", "g", 5, "two"))
        assert reset(here, to=to).answer == msgspec.Raw(b'{"done":1}')
        assert committed(WireClient(here.port), 9, "g")["committed_offset"] == offset, "as its next member is told"
        assert [each.committed for each in lag(here, group="g").partitions] == [offset, 5], "within its topic alone"


def test_a_group_that_is_not_there_yet_can_be_given_a_place(root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        assert reset(here, group="new", user="anna", to="latest", partition=0).missing == ""
        assert lag(here, group="new", user="anna").partitions[0].lag == 0


@pytest.mark.parametrize(("asked", "words"), [({"topic": "gone"}, "there is no gone"), ({"partition": 7}, "main/7"),
                                              ({"partition": -1}, "main/-1")])  # fmt: skip
def test_a_place_that_is_not_there_is_named(asked: dict[str, Any], words: str, root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        assert words in reset(here, to="earliest", **asked).missing and groups(here).groups == []


def test_an_offset_is_a_number_or_a_word() -> None:
    for wrong in ("-1", "newest", "", "1.5", "9" * 19):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"group": "g", "topic": "main", "to": wrong}, k.ResetGroup)


def test_a_group_with_members_is_left_alone(root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        take(here, commit("", "g", 250))
        read(WireClient(here.port), "g", b"")
        for reply in (reset(here, to="earliest"), delete(here, "g")):
            assert reply.conflict == "group g has members: stop its consumers first"
        assert lag(here, group="g").partitions[0].committed == 250


def test_a_group_is_deleted_and_that_of_another_user_stays(root: str) -> None:
    with served(root, groups=BOUNDS) as here:
        take(here, commit("", "g", 1), commit("anna", "g", 2), commit("", "g", 3, "two"))
        assert delete(here, "g").answer == msgspec.Raw(b'{"done":2}')
        assert [(each.user, each.group) for each in groups(here).groups] == [("anna", "g")]
        assert delete(here, "g").missing == "there is no group g of clients without a login"


def test_beyond_the_bound_and_without_groups_nothing_is_done(root: str) -> None:
    with served(root, groups=BOUNDS._replace(bytes=100)) as here:
        assert "kafka.group_bytes_max" in reset(here, to="earliest").refused
    with served(root) as here:
        assert "serves no groups" in delete(here, "g").refused
