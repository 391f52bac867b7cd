"""A change of members by the leader: learners, joint, settled; with answers that are lost, and by a successor."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from rumq.cluster.control.agent_messages import AgentMessage, Claim, Claimed
from rumq.cluster.control.records import ShardRecord, Versioned, View
from rumq.loop.scheduler import ShardClock, TimerQueue
from rumq.process.shard.member_change import LOOK_SECONDS, NEAR_RECORDS, UNKNOWN_SECONDS, MemberChange

OLD = ["n1", "n2", "n3"]


class World:
    """The leader n1, and the control plane. claims: that were asked for, and not yet answered; steps: of the record

    says: whether the agent is there; behind: of followers; notes: what the disk and the replication were told"""

    def __init__(self, **fields: Any) -> None:
        first = ShardRecord(epoch=5, leader="n1", claim="first", replicas=OLD)
        self.now = Versioned(msgspec.structs.replace(first, **fields), 10)
        self.claims: list[Claim] = []
        self.steps: list[tuple[int, list[str], list[str] | None, list[str]]] = []
        self.notes: list[tuple[object, ...]] = []
        self.behind: dict[str, int | None] = {}
        self.says = True
        self.seconds = 0.0
        self.clock = ShardClock(lambda: (0, self.seconds))
        self.timers = TimerQueue(self.clock)
        self.core: Any = SimpleNamespace(
            record=self.now.record, epoch=5, is_open=True, node="n1", behind=lambda: self.behind
        )
        replication: Any = SimpleNamespace(
            core=self.core, change=self._change, settle=self._settle,
            succession=SimpleNamespace(hand_over=lambda to, done: self.notes.append(("hand over", to))),
        )  # fmt: skip
        state: Any = SimpleNamespace(
            promise=lambda epoch, term, forced: self.notes.append(("promise", epoch)),
            note_voters=lambda voters: self.notes.append(("voters", voters[1])),
        )
        self.members = MemberChange(0, state, replication, self._say, self.timers)
        self.answers: list[str] = []
        self.show()

    def _change(self, epoch: int, record: ShardRecord) -> None:
        self.core.epoch, self.core.record = epoch, record
        self.notes.append(("change", epoch))

    def _settle(self, record: ShardRecord) -> None:
        self.core.record = record

    def _say(self, message: AgentMessage) -> bool:
        if self.says:
            assert isinstance(message, Claim)
            self.claims.append(message)
        return self.says

    def show(self) -> None:
        view = View(cluster="c", node="n1", replicas=3, nodes=[], shards=[self.now], is_current=True)
        self.members.seen(view)

    def begin(self, *members: str) -> None:
        self.members.begin(list(members), self.answers.append)

    def pass_(self, seconds: float = LOOK_SECONDS) -> None:
        until = self.seconds + seconds
        while self.seconds < until:
            self.seconds += LOOK_SECONDS
            self.clock.tick()
            self.timers.run_due(guard)

    def apply(self, claim: Claim) -> bool:
        """As the control plane does."""
        if claim.revision != self.now.revision:
            return False
        self.now = Versioned(claim.record, claim.revision + 1)
        record = claim.record
        self.steps.append((record.epoch, record.replicas, record.old_replicas, record.learners))
        return True

    def answer(self) -> None:
        claim = self.claims.pop(0)
        won = self.apply(claim)
        self.members.claimed(Claimed(claim.request, won, True, self.now))

    def settle(self) -> None:
        """Until nothing is asked for any more."""
        for _ in range(50):
            self.pass_()
            while self.claims:
                self.answer()


def guard(task: str, call: Callable[[], None]) -> None:
    call()


def test_new_members_learn_then_old_and_new_decide_then_the_new_alone() -> None:
    world = World()
    world.behind = {"n4": None}
    world.begin("n1", "n2", "n4")
    world.settle()
    assert world.steps == [(5, OLD, None, ["n4"])] and world.answers == []  # it is away
    world.behind = {"n4": NEAR_RECORDS + 1}
    world.settle()
    assert len(world.steps) == 1  # too far behind to count
    world.behind = {"n4": NEAR_RECORDS}
    world.settle()
    assert world.steps[1:] == [
        (6, ["n1", "n2", "n4"], OLD, []),
        (6, ["n1", "n2", "n4"], None, []),
    ]
    assert world.answers == [""] and world.members.wanted == []
    # It is opened once majorities have promised it, which the replication tells.
    assert world.notes == [("voters", 0), ("promise", 6), ("change", 6), ("voters", 2)]


def test_a_leader_that_is_no_member_any_more_hands_over() -> None:
    world = World()
    world.behind = {"n4": 0}
    world.begin("n2", "n3", "n4")
    world.settle()
    assert world.answers == [""] and world.notes[-1] == ("hand over", "n2")


def test_fewer_members_need_no_learner() -> None:
    world = World()
    world.begin("n1", "n2")
    world.settle()
    assert world.steps == [(6, ["n1", "n2"], OLD, []), (6, ["n1", "n2"], None, [])] and world.answers == [""]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ((), "expected different nodes as members"),
        (("n1", "n1"), "expected different nodes as members"),
        (OLD, ""),
    ],
)
def test_what_is_no_change_is_answered_at_once(members: list[str], says: str) -> None:
    world = World()
    world.begin(*members)
    assert world.answers == [says] and world.members.wanted == []


def test_one_change_at_a_time() -> None:
    world = World()
    world.behind = {"n4": 0}
    world.begin("n1", "n2", "n4")
    world.pass_()
    world.answer()
    world.pass_()
    [joint] = world.claims
    assert joint.record.old_replicas == OLD
    world.begin("n1", "n2", "n5")
    assert world.answers == ["the members of shard 0 are being changed to n1, n2, n4"]
    world.settle()
    assert world.answers[1:] == [""] and world.now.record.replicas == ["n1", "n2", "n4"]


def test_a_copy_that_never_catches_up_does_not_hold_the_next_change() -> None:
    world = World()
    world.behind = {"n4": None, "n5": 0}
    world.begin("n1", "n2", "n4")
    world.settle()
    world.begin("n1", "n2", "n5")
    assert world.answers == ["another order has taken its place before n1, n2, n4 had learnt"]
    world.settle()
    assert world.answers[1:] == [""] and world.now.record.replicas == ["n1", "n2", "n5"]
    assert world.now.record.learners == []
    world.begin("n1", "n2", "n4")
    world.settle()
    world.begin("n1", "n2", "n5")  # those that are members already: it is given up
    world.settle()
    assert world.answers[3:] == [""] and world.now.record.learners == [] and world.members.wanted == []


def test_each_step_says_which_term_and_configuration_it_is_of() -> None:
    """The claim that raised the epoch names the term; learners have no vote, so they make no new configuration."""
    world = World(term="first", config=4, forced=3)
    world.behind = {"n4": 0}
    world.begin("n1", "n2", "n4")
    records = []
    for _ in range(3):
        world.pass_()
        world.answer()
        records.append(world.now.record)
    learning, joint, settled = records
    assert [each.config for each in records] == [4, 5, 6] and {each.forced for each in records} == {3}
    assert learning.term == "first" and joint.term == settled.term == joint.claim != settled.claim


def test_nothing_is_asked_for_while_the_term_is_not_open() -> None:
    world = World()
    world.core.is_open = False
    world.begin("n1", "n2")
    world.settle()
    assert world.steps == []
    world.core.is_open = True
    world.settle()
    assert world.answers == [""]


def test_a_successor_settles_what_it_finds_joint() -> None:
    world = World(replicas=["n1", "n2", "n4"], old_replicas=OLD)
    world.settle()
    assert world.steps == [(5, ["n1", "n2", "n4"], None, [])] and world.members.wanted == []


def test_a_successor_fills_a_shard_that_has_too_few_members_from_its_learners() -> None:
    world = World(replicas=["n1"], learners=["n2", "n3", "n4"])
    world.behind = {"n2": 0, "n3": 0, "n4": 0}
    world.settle()
    assert world.steps[-1] == (6, OLD, None, [])


def test_a_successor_gives_up_learners_of_which_nobody_knows_whose_place_they_take() -> None:
    world = World(learners=["n4"])
    world.behind = {"n4": 0}
    world.settle()
    assert world.steps == [(5, OLD, None, [])] and world.members.wanted == []
    world.begin("n1", "n2", "n4")  # and it can be ordered anew
    world.settle()
    assert world.answers == [""]


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_change_that_was_made_though_its_answer_was_lost_is_seen_in_the_record(step: int) -> None:
    world = World()
    world.behind = {"n4": 0}
    world.begin("n1", "n2", "n4")
    for at in range(3):
        world.pass_()
        [claim] = world.claims
        if at == step:
            world.claims.clear()
            world.members.claimed(Claimed(claim.request, False, False, None))
            world.pass_()
            assert world.claims == []  # it is waited for
            world.apply(claim)
            world.show()
        else:
            world.answer()
    world.settle()
    assert world.answers == [""] and len(world.steps) == 3


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_change_that_was_never_made_is_asked_for_once_more(step: int) -> None:
    world = World()
    world.behind = {"n4": 0}
    world.begin("n1", "n2", "n4")
    for at in range(3):
        world.pass_()
        [claim] = world.claims
        if at == step:
            world.claims.clear()
            world.members.claimed(Claimed(claim.request, False, False, None))
            world.pass_(UNKNOWN_SECONDS + LOOK_SECONDS)
            [again] = world.claims
            assert again.record.claim != claim.record.claim and again.revision == claim.revision
        world.answer()
    world.settle()
    assert world.answers == [""] and len(world.steps) == 3


def test_the_first_of_two_tries_may_still_be_the_one_that_is_made() -> None:
    world = World()
    world.begin("n1", "n2")
    world.pass_()
    [claim] = world.claims
    world.pass_(UNKNOWN_SECONDS + LOOK_SECONDS)
    again = world.claims.pop()
    world.apply(claim)
    assert not world.apply(again)
    world.members.claimed(Claimed(again.request, False, True, world.now))
    world.claims.clear()
    assert world.core.epoch == 6 and world.core.record.claim == claim.record.claim
    world.settle()
    assert world.answers == [""]


@pytest.mark.parametrize("step", [0, 1, 2])
def test_a_step_that_lost_against_another_change_is_taken_again(step: int) -> None:
    world = World()
    world.behind = {"n4": 0}
    world.begin("n1", "n2", "n4")
    for at in range(3):
        world.pass_()
        if at == step:
            world.now = Versioned(world.now.record, world.now.revision + 1)
            world.answer()
            world.pass_()
        if world.claims:
            world.answer()
    world.settle()
    assert world.answers == [""] and world.steps[-1] == (6, ["n1", "n2", "n4"], None, [])


@pytest.mark.parametrize("step", [0, 1, 2])
def test_an_agent_that_is_away_delays_a_change_and_does_not_lose_it(step: int) -> None:
    world = World()
    world.behind = {"n4": 0}
    world.begin("n1", "n2", "n4")
    for at in range(3):
        world.says = at != step
        world.pass_()
        world.says = True
        world.pass_()
        world.answer()
    world.settle()
    assert world.answers == [""] and len(world.steps) == 3


def test_a_newer_term_that_an_answer_tells_of_is_not_replaced_by_this_one() -> None:
    """The view that ends this term comes a moment later."""
    world = World()
    world.behind = {"n4": 0}
    world.begin("n1", "n2", "n4")
    world.pass_()
    [claim] = world.claims
    newer = msgspec.structs.replace(world.now.record, epoch=6, leader="n2", claim="theirs", term="theirs")
    world.now = Versioned(newer, world.now.revision + 1)
    world.answer()
    world.pass_(2 * UNKNOWN_SECONDS)
    assert not world.claims and world.now.record == newer
    assert claim.record.epoch == 5
