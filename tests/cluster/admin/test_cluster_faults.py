"""What an operator of a cluster should act on is said with the way out."""

from typing import Any

import msgspec
import pytest

from rumq.admin.cluster_rows import TermRow
from rumq.cluster.admin.cluster_faults import ENDS_MAX, faults
from rumq.cluster.control.agent_messages import Here, Report
from rumq.cluster.control.control_plane import NOT_THERE, ControlHealth, MemberHealth
from rumq.cluster.control.records import Versioned
from tests.cluster.admin.world import HEALTH, node, record, status_of, term, view_of

WHOLE = record("a", "a", "b", "c")


def test_nothing_is_wrong_with_a_cluster_that_is_whole() -> None:
    assert list(faults(status_of(view_of([node("a"), node("b"), node("c")], WHOLE)))) == []


def test_a_lost_copy_a_lost_majority_and_a_lost_leader_are_told() -> None:
    (copy,) = faults(status_of(view_of([node("a"), node("b")], WHOLE)))
    assert "its copy at c is gone" in copy and "cluster move 0 --from c" in copy
    (majority,) = faults(status_of(view_of([node("a")], WHOLE)))
    assert "2 of 3 replicas are gone" in majority and "force-leader --help" in majority
    told = list(faults(status_of(view_of([node("b"), node("c")], WHOLE))))
    assert "has no leader that lives" in told[-1]


def test_a_control_plane_that_does_not_answer_is_told() -> None:
    nodes = [node("a"), node("b"), node("c")]
    silent = status_of(view_of(nodes, WHOLE, is_current=False), ControlHealth(kind="etcd", members=[]))
    (away,) = faults(silent)
    assert "no leader can change" in away
    (never,) = faults(status_of(None))
    assert "cluster.etcd" in never


def test_a_control_plane_that_answers_without_the_clusters_record_is_not_told_to_be_silent() -> None:
    lost = view_of([node("a"), node("b"), node("c")], WHOLE, is_current=False)
    (empty,) = faults(status_of(lost))
    assert "has no record of this cluster" in empty and "cluster.record_lost" in empty
    silent = msgspec.structs.replace(status_of(lost), lost_seconds=3.0)
    (away,) = faults(silent)
    assert "does not answer" in away


def test_endpoints_of_several_etcds_are_told() -> None:
    """As where etcd was started with its defaults before its members were told of each other."""
    apart = ControlHealth(
        kind="etcd",
        members=[
            MemberHealth(endpoint=endpoint, store=store)
            for endpoint, store in (("e1", "c: 1"), ("e2", "c: 2"), ("e3", ""))
        ],
    )
    (told,) = of(WHOLE, SOUND, health=apart)
    assert "e1 and e2 are not of one etcd" in told and "docs/guides/cluster.md" in told


def test_a_node_that_is_back_with_another_disk_is_named_with_both() -> None:
    nodes = [node("a"), node("b"), node("c#1")]
    (told,) = faults(status_of(view_of(nodes, WHOLE)))
    assert "rumqd cluster move 0 --from c#0 --to c#1" in told


NODES = [node("a"), node("b"), node("c")]
SOUND = term("a", "a", "b", "c")


def of(shard: Versioned = WHOLE, *terms: TermRow, **more: Any) -> list[str]:
    """What is wrong with one shard, whose leader says this, or has not answered."""
    status = msgspec.structs.replace(status_of(view_of(NODES, shard)), **more)
    return list(faults(status, {each.shard: each for each in terms}))


def test_nothing_is_wrong_where_the_leader_says_that_all_copies_are_in_sync() -> None:
    assert of(WHOLE, SOUND) == []
    assert of(WHOLE, msgspec.structs.replace(SOUND, members=["a#0", "b#0", "c#0"])) == []


@pytest.mark.parametrize(
    ("shard", "said", "words"),
    [
        (WHOLE, [], ["its leader at a does not answer"]),
        (WHOLE, [term("a", "a", "b", behind_records={"b#0": 0, "c#0": None})], ["copy at c is being compared, fails"]),
        (WHOLE, [term("a", "a", "b")], ["copy at c lacks 5 records", "cluster.copy_failed"]),
        (WHOLE, [term("a", "a", "b", "c", has_quorum=False)], ["hears too few copies, and acknowledges nothing"]),
        (WHOLE, [term("a", "a", "b", "c", is_open=False)], ["is taking office"]),
        (record("a", "a", "b", "c", epoch=2), [SOUND], ["leads epoch 1", "the control plane has a#0, epoch 2"]),
        (WHOLE, [term("b", "a", "b", "c")], ["b#0 leads epoch 1"]),
        (WHOLE, [term("a", "a", "b", "c", members=["a#0"])], ["with a#0, and the control plane has", "a#0 b#0 c#0"]),
        (record("a", "a", "b"), [SOUND], ["has 2 of 3 copies: rumqd cluster add NODE --shard 0"]),
        (record("a", "a", learners=["b", "c"]), [SOUND], ["has 1 of 3 copies: b#0 c#0 are being filled: wait"]),
        (record("a", "a", "b", "c", learners=["x"]), [SOUND], ["x#0 is being filled", "to be filled, and is gone"]),
        (record("a", "a", "b", "c", old_replicas=["a", "b"]), [SOUND], ["its copies go from a#0 b#0 to a#0 b#0 c#0"]),
        (NOT_THERE, [], ["1 shards have not begun", "when 3 nodes live, and 3 do"]),
    ],
)
def test_what_the_record_or_the_leader_says_is_told(shard: Versioned, said: list[TermRow], words: list[str]) -> None:
    found = of(shard, *said)
    assert found and all(word in "\n".join(found) for word in words), found


def test_a_shard_that_nobody_leads_though_the_record_names_a_node_is_told_so() -> None:
    """As where copies disagree: the claim of that node came to nothing."""
    lone = Report(0, "standby", 4, {"hears_leader": False})
    (told,) = of(WHOLE, reports=[lone])
    assert "nobody leads it" in told and "cluster.copies_disagree" in told and "does not answer" not in told
    (told,) = of(WHOLE, reports=[Report(0, "standby", 4, {"hears_leader": True})])
    assert "its leader at a does not answer" in told


def test_a_node_looks_at_the_leaders_that_it_asked() -> None:
    view = view_of(NODES, WHOLE, record("b", "b", "c", "a"))
    assert list(faults(status_of(view), {0: SOUND}, here=True)) == []
    assert len(list(faults(status_of(view), {0: SOUND}))) == 1
    assert list(faults(status_of(view), None)) == [], "an older version does not ask them"


def test_a_record_that_went_back_and_a_member_of_etcd_that_is_gone_are_told() -> None:
    view = msgspec.structs.replace(view_of(NODES, WHOLE), epochs_back=[0])
    (back,) = faults(status_of(view))
    assert "older record" in back and "force-leader" in back
    down = ControlHealth(kind="etcd", members=[*HEALTH.members, MemberHealth(endpoint="e2", why="refused")])
    assert of(WHOLE, SOUND, health=down) == ["e2 of the control plane does not answer (refused): start it again"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"ends": {0: ENDS_MAX}}, f"shard 0 on this node has ended {ENDS_MAX} times"),
        ({"processes": [Here("edge", -1, 7)]}, "no process of shard 0 runs on this node"),
        ({"reports": [Report(0, "standby", 4, {"opened": -1})]}, "may lack what it had acknowledged"),
    ],
)
def test_processes_of_this_node_that_crash_or_doubt_their_copy_are_told(more: dict[str, Any], words: str) -> None:
    (found,) = of(WHOLE, SOUND, **more)
    assert words in found


def test_processes_that_do_what_they_should_are_not() -> None:
    assert of(WHOLE, SOUND, processes=[Here("shard", 0, 7)], ends={0: ENDS_MAX - 1}) == []
