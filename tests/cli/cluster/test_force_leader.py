"""`force-leader`: what is refused, what is asked, what is marked, and what becomes of the claim."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rumq.cli.cluster.agent_dialog import OrderFailed
from rumq.cli.cluster.force_leader import FORCED, MARKS_NAME, check_force, force_leader
from rumq.cli.cluster.orders import NotPossible
from rumq.cluster.control.agent_messages import AgentStatus, Claim, Claimed, Report
from rumq.cluster.control.control_plane import ControlHealth
from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from tests.cluster.node.world import node_record

HERE, SECOND, THIRD = "n1#1", "n2#2", "n3#3"


def record(*replicas: str, **fields: Any) -> ShardRecord:
    plain = ShardRecord(epoch=4, leader=SECOND, claim="c", replicas=list(replicas))
    return msgspec.structs.replace(plain, **fields)


def view_of(shard: ShardRecord, *alive: str, **fields: Any) -> View:
    """alive: nodes; this one is one of them"""
    nodes: list[NodeRecord] = [node_record(each) for each in (HERE, *alive)]
    plain = View(cluster="c1d2", node=HERE, replicas=3, nodes=nodes, shards=[Versioned(shard, 17)], is_current=True)
    return msgspec.structs.replace(plain, **fields)


class Dialog:
    """In place of `AgentDialog`. claims: what was asked; marks: lines of the mark's file when it was"""

    def __init__(self, data: Path, view: View | None, answer: Claimed | None = None) -> None:
        self._data, self._view = data, view
        self._answer = answer or Claimed(1, won=True, known=True, now=None)
        self.claims: list[Claim] = []
        self.reports: list[Report] = []
        self.marks: list[int] = []
        (data / "_cluster").mkdir()

    def status(self) -> AgentStatus:
        return AgentStatus(1, self._view, self.reports, [], ControlHealth(kind="etcd", members=[]), 0.0, 0)

    def claim(self, claim: Claim) -> Claimed:
        self.claims.append(claim)
        self.marks.append(len(marks(self._data)))
        return self._answer


def marks(data: Path) -> list[Any]:
    path = data / MARKS_NAME
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def force(dialog: Any, data: Path, typed: str = "demo", shard: int = 0) -> list[str]:
    """Prompts that were shown."""
    shown: list[str] = []

    def ask(prompt: str) -> str:
        shown.append(prompt)
        return typed

    force_leader(dialog, str(data), shard, "demo", ask)
    return shown


LOST = record(HERE, SECOND, THIRD)


def test_this_nodes_copy_becomes_the_only_one_and_the_mark_is_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_USER", "anna")
    dialog = Dialog(tmp_path, view_of(LOST))
    [prompt] = force(dialog, tmp_path, "  demo \n")
    assert f"goes on with the copy of {HERE} alone" in prompt and "made equal" not in prompt
    assert f"What the replicas {SECOND} {THIRD} have and {HERE} has not is given up" in prompt
    assert "Acknowledged messages" in prompt and prompt.endswith("Type the name of the cluster to go on: ")
    [claim] = dialog.claims
    assert (claim.shard, claim.revision) == (0, 17)
    name = claim.record.claim
    assert claim.record == ShardRecord(epoch=5, leader="", claim=name, replicas=[HERE], term=name, config=1, forced=5)
    assert claim.record.claim.startswith(FORCED) and len(claim.record.claim) == len(FORCED) + 16
    [mark] = marks(tmp_path)
    assert dialog.marks == [1], "before anything was changed"
    assert (mark["shard"], mark["before"], mark["after"]) == (
        0,
        msgspec.to_builtins(LOST),
        msgspec.to_builtins(claim.record),
    )
    assert mark["time"].endswith("Z") and mark["user"] == "anna"


def test_healthy_copies_are_kept_as_learners(tmp_path: Path) -> None:
    """They have most of the log: the leader compares them and sends what differs, as to any learner."""
    shard = record(HERE, SECOND, THIRD, old_replicas=[HERE, "n4#4"], learners=["n5#5"], config=7, forced=2)
    dialog = Dialog(tmp_path, view_of(shard, SECOND, "n5#5", epochs_back=[0]))
    [prompt] = force(dialog, tmp_path)
    assert f"copies of {SECOND} n5#5 are made equal" in prompt
    [claim] = dialog.claims
    wanted = claim.record
    assert (wanted.replicas, wanted.old_replicas, wanted.learners) == ([HERE], None, [SECOND, "n5#5"])
    assert (wanted.config, wanted.forced, wanted.term) == (8, 5, wanted.claim)


def test_each_time_leaves_a_line_of_its_own_and_has_a_claim_of_its_own(tmp_path: Path) -> None:
    dialog = Dialog(tmp_path, view_of(LOST))
    for _ in range(2):
        force(dialog, tmp_path)
    claims = [each.record.claim for each in dialog.claims]
    assert len(set(claims)) == 2 and [each["after"]["claim"] for each in marks(tmp_path)] == claims


@pytest.mark.parametrize("typed", ["", "yes", "DEMO", "dem", "c1d2"])
def test_any_other_word_changes_nothing(tmp_path: Path, typed: str) -> None:
    dialog = Dialog(tmp_path, view_of(LOST))
    with pytest.raises(NotPossible, match="nothing was changed"):
        force(dialog, tmp_path, typed)
    assert not dialog.claims and not marks(tmp_path)


@pytest.mark.parametrize(
    ("view", "shard", "why"),
    [
        (view_of(LOST, SECOND), 0, "it needs no force"),
        (view_of(record(SECOND, THIRD)), 0, f"{HERE} has no copy of shard 0"),
        (view_of(LOST), 1, "there is no shard 1"),
        (view_of(LOST, is_current=False), 0, "the control plane does not answer"),
        (None, 0, "the control plane does not answer"),
    ],
)
def test_what_cannot_be_forced_is_refused_before_anything_is_asked(
    tmp_path: Path, view: View | None, shard: int, why: str
) -> None:
    dialog = Dialog(tmp_path, view)
    with pytest.raises(NotPossible, match=why):
        force(dialog, tmp_path, shard=shard)
    assert not dialog.claims and not marks(tmp_path)


@pytest.mark.parametrize(
    ("shard", "alive", "needs_force"),
    [
        (record(HERE), [], False),
        (record(HERE, SECOND), [], True),  # half is no majority
        (record(HERE, SECOND), [SECOND], False),
        (record(HERE, SECOND, THIRD), [THIRD], False),
        (record(HERE, old_replicas=[HERE, SECOND, THIRD]), [], True),  # the old ones have to agree, too
        (record(HERE, old_replicas=[HERE, SECOND, THIRD]), [THIRD], False),
        (record(SECOND, THIRD, learners=[HERE]), [], True),  # its copy may be all that is left
        (record(SECOND, THIRD, learners=[HERE]), [SECOND, THIRD], False),
    ],
)
def test_it_takes_a_lost_majority_of_the_old_or_the_new_replicas(
    shard: ShardRecord, alive: list[str], needs_force: bool
) -> None:
    if needs_force:
        check_force(view_of(shard, *alive), 0, shard)
    else:
        with pytest.raises(NotPossible, match="needs no force"):
            check_force(view_of(shard, *alive), 0, shard)


def test_a_shard_without_a_leader_may_be_forced_though_all_live(tmp_path: Path) -> None:
    """Their copies disagree: nobody leads before an operator has chosen one."""
    dialog = Dialog(tmp_path, view_of(record(HERE, SECOND, THIRD, epoch=9), SECOND, THIRD))
    dialog.reports = [Report(0, "standby", 9, {"hears_leader": True})]
    with pytest.raises(NotPossible, match="needs no force"):
        force(dialog, tmp_path)
    dialog.reports = [Report(0, "standby", 9, {"hears_leader": False})]
    force(dialog, tmp_path)
    assert dialog.claims[0].record.epoch == 10


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Claimed(1, won=False, known=True, now=None), "has changed meanwhile, so nothing was forced"),
        (Claimed(1, won=False, known=False, now=None), "the control plane did not answer"),
    ],
)
def test_a_claim_that_was_not_won_is_told_and_its_mark_stays(tmp_path: Path, answer: Claimed, why: str) -> None:
    dialog = Dialog(tmp_path, view_of(LOST), answer)
    with pytest.raises(OrderFailed, match=why):
        force(dialog, tmp_path)
    assert len(marks(tmp_path)) == 1
