"""A standby: it follows one link, takes office when nobody leads, and writes before it answers.

docs/explanation/replication.md."""

from random import Random

from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.majority_lease import HOLD_SECONDS, NOT_LEASED
from rumq.cluster.replication.standby.office import UNKNOWN_SECONDS
from rumq.cluster.replication.standby.standby_core import StandbyCore
from tests.cluster.simulation.disk import Disk, DiskState, MemoryLogs
from tests.cluster.simulation.image import Image

P, Q = "main/g0/p0", "main/g0/p1"
RAW = memoryview(b"")
ENDS = {P: 0, Q: 0}


class Replica:
    """Node "a" of three."""

    def __init__(self, epoch: int = 3, leader: str = "b") -> None:
        self.disk = Disk(Random(0))
        self.state = DiskState(self.disk)
        self.core = StandbyCore(
            "a", MemoryLogs(self.disk), self.state, patience=lambda: 0.5, unique=lambda: "mine", now=0.0
        )
        self.see(epoch, leader)

    def see(self, epoch: int, leader: str, claim: str = "theirs", now: float = 0.0, is_current: bool = True) -> None:
        self.core.seen(view(epoch, leader, claim), is_current, now)

    def hear(self, link: int, message: m.ReplicaMessage, now: float = 0.0, raw: bytes = b"") -> list[fx.Effect]:
        self.core.received(link, message, memoryview(raw), now)
        return self.core.take_effects()

    def answer(self, peer: str, message: m.ReplicaMessage, now: float = 0.0) -> list[fx.Effect]:
        self.core.answered(peer, message, RAW, now)
        return self.core.take_effects()

    def claim(self, now: float = 0.5) -> list[fx.Effect]:
        """It polls, nobody hears a leader, and it claims."""
        self.core.tick(now)
        self.core.take_effects()
        said = self.answer("b", m.Polled(False, 0, 0, 0), now) + self.answer("c", m.Polled(False, 0, 0, 0), now)
        self.core.tick(now + 0.2)
        return said + self.core.take_effects()


def view(epoch: int, leader: str, claim: str = "theirs") -> Versioned:
    return Versioned(ShardRecord(epoch=epoch, leader=leader, claim=claim, replicas=["a", "b", "c"]), epoch + 1)


def test_r2_a_promise_is_on_disk_before_it_is_answered_and_older_ones_are_refused() -> None:
    replica = Replica()
    assert replica.hear(1, m.Promise(3)) == [fx.Reply(1, m.Promised(3, 0, ENDS, marks={}))]
    assert replica.disk.promised == 3
    assert replica.hear(2, m.Promise(2)) == [fx.Reply(2, m.Outdated(3), True)]


def test_r5_frames_of_another_link_or_epoch_are_refused() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(3))
    assert replica.hear(2, m.Open(3, P, "s", 0)) == [fx.Reply(2, m.Outdated(3), True)]
    assert replica.hear(1, m.Open(2, P, "s", 0)) == [fx.Reply(1, m.Outdated(3), True)]
    replica.hear(2, m.Promise(4), 0.5)
    assert replica.hear(1, m.Open(3, P, "s", 0), 0.5) == [fx.Reply(1, m.Outdated(4), True)]


def test_r6_what_came_is_acknowledged_after_its_sync() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(3))
    replica.hear(1, m.Open(3, P, "s", 0))
    assert replica.hear(1, m.Write(3, P, "s", 16), raw=bytes(16)) == []
    assert replica.disk.parts[P].durable.end_lsn == 0
    replica.core.flush()
    assert replica.core.take_effects() == [fx.Reply(1, m.Synced(3, P, 2, "s", 32))]
    assert replica.disk.parts[P].durable.end_lsn == 2


def test_r4_opened_is_on_disk_before_it_is_said() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(3))
    assert replica.disk.opened == 0
    assert replica.hear(1, m.Complete(3)) == [fx.Reply(1, m.Opened(3))]
    assert replica.disk.opened == 3


def test_r5_a_mark_counts_only_once_the_term_is_opened_here() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(3))
    replica.hear(1, m.Beat(3, {P: 7}))
    assert replica.disk.told[P] == 0
    replica.hear(1, m.Complete(3))
    replica.hear(1, m.Beat(3, {P: 7}))
    assert replica.disk.told[P] == 7


def test_c4_nobody_is_claimed_against_while_a_majority_hears_the_leader() -> None:
    replica = Replica()
    replica.core.tick(0.5)
    assert replica.core.take_effects() == [fx.Send("b", m.Poll()), fx.Send("c", m.Poll())]
    replica.answer("b", m.Polled(True, 3, 3, 0), 0.5)
    assert replica.answer("c", m.Polled(True, 3, 3, 0), 0.5) == []
    replica.core.tick(0.7)
    assert not any(isinstance(each, fx.ClaimShard) for each in replica.core.take_effects())


def test_c4_a_replica_with_a_better_log_goes_first() -> None:
    replica = Replica()
    replica.core.tick(0.5)
    replica.core.take_effects()
    replica.answer("b", m.Polled(False, 3, 3, 9), 0.5)
    assert replica.answer("c", m.Polled(False, 3, 0, 0), 0.5) == []
    replica.core.tick(0.56)
    assert [type(each) for each in replica.core.take_effects()] == [fx.ClaimShard]


def test_it_takes_office_with_the_promises_of_a_majority() -> None:
    replica = Replica()
    claimed = replica.claim()
    assert isinstance(claimed[0], fx.ClaimShard)
    assert claimed[0].record.epoch == 4
    replica.core.claimed(True, True, view(4, "a", "mine"), 0.7)
    assert replica.core.take_effects() == [fx.Send(each, m.Promise(4, "mine")) for each in ("b", "c")]
    assert replica.disk.promised == 4
    assert not replica.core.is_leading
    lead = replica.answer("b", m.Promised(4, 0, ENDS), 0.7)
    assert [type(each) for each in lead] == [fx.Lead]
    assert replica.core.is_leading
    assert replica.disk.opened == 4
    assert replica.core.next_deadline == float("inf")


def test_r3_the_log_with_the_higher_opened_epoch_is_fetched_though_it_is_shorter() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(3))
    replica.hear(1, m.Open(3, P, "s", 0))
    replica.hear(1, m.Write(3, P, "s", 16), raw=bytes(16))
    replica.core.lost(1, 0.1)
    replica.core.take_effects()
    replica.claim(1.0)
    replica.core.claimed(True, True, view(4, "a", "mine"), 1.2)
    replica.core.take_effects()
    asked = replica.answer("b", m.Promised(4, 2, {P: 1, Q: 0}), 1.2)
    assert isinstance(asked[0], fx.Send)
    assert isinstance(asked[0].message, m.FetchCopy)
    assert (asked[0].peer, asked[0].message.partition) == ("b", P)


def test_c2_a_claim_of_unknown_outcome_is_settled_by_the_record() -> None:
    replica = Replica()
    replica.claim()
    replica.core.claimed(False, False, None, 1.0)
    assert replica.core.take_effects() == []
    replica.see(4, "a", "mine", 1.1)
    assert fx.Send("b", m.Promise(4, "mine")) in replica.core.take_effects()


def test_whoever_has_won_the_epoch_that_this_replica_claims_too_is_promised_it() -> None:
    replica = Replica()
    replica.claim()
    assert replica.hear(1, m.Promise(4), 0.8) == [fx.Reply(1, m.Promised(4, 0, ENDS, marks={}))]


def test_r14_a_claimant_that_waits_for_promises_or_a_log_says_that_it_lives() -> None:
    replica = Replica()
    replica.claim()
    replica.core.claimed(True, True, view(4, "a", "mine"), 0.7)
    asked = replica.answer("b", m.Promised(4, 3, {P: 9, Q: 0}), 0.7)
    assert any(isinstance(each, fx.Send) and isinstance(each.message, m.FetchCopy) for each in asked)
    replica.core.tick(0.8)
    assert replica.core.take_effects() == [fx.Send("b", m.Beat(4, {}))]
    polled = replica.hear(9, m.Poll(), 0.8)
    assert isinstance(polled[0], fx.Reply)
    assert isinstance(polled[0].message, m.Polled)
    assert polled[0].message.hears_leader


def test_r14_a_claimant_that_hangs_up_is_not_taken_for_dead_and_a_leader_is() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(4), 1.0)
    replica.core.lost(1, 1.01)
    assert replica.core.take_effects() == []
    replica.hear(2, m.Promise(4), 1.02)
    replica.hear(2, m.Inventory(4, P), 1.03)
    replica.core.lost(2, 1.04)
    assert fx.Send("b", m.Poll()) in replica.core.take_effects()


def test_r11_a_damaged_copy_does_not_claim() -> None:
    replica = Replica()
    replica.state.distrust()
    replica.core.tick(5.0)
    assert replica.core.take_effects() == []


def test_an_epoch_that_goes_back_is_told_once() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(7))
    said: list[fx.Effect] = []
    for now in (1.0, 7.0, 8.0):
        said += replica.hear(1, m.Beat(7, {}), now)
        replica.see(2, "b", now=now)
        said += replica.core.take_effects()
    assert [each.name for each in said if isinstance(each, fx.Alarm)] == ["cluster.epoch_back"]


def test_an_old_view_of_a_control_plane_that_is_out_of_reach_is_no_epoch_that_goes_back() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(7))
    said: list[fx.Effect] = []
    for now, is_current in ((1.0, True), (4.0, False), (8.0, True), (12.0, True)):
        said += replica.hear(1, m.Beat(7, {}), now)
        replica.see(2, "b", now=now, is_current=is_current)
        said += replica.core.take_effects()
    assert not [each for each in said if isinstance(each, fx.Alarm)]


def followed(now: float = 1.0) -> Replica:
    """It follows the leader of epoch 3 over link 1, and has just answered a beat."""
    replica = Replica()
    replica.hear(1, m.Promise(3), now)
    replica.hear(1, m.Inventory(3, P), now)
    assert replica.hear(1, m.Beat(3, {}, count=7), now) == [fx.Reply(1, m.Heard(3, count=7))]
    return replica


def test_r15_nobody_else_is_promised_anything_while_the_leader_may_hold_its_lease() -> None:
    replica = followed()
    assert replica.hear(2, m.Promise(4), 1.1) == []
    assert replica.disk.promised == 3 and replica.core.next_deadline <= 1.0 + HOLD_SECONDS
    assert replica.hear(1, m.Beat(3, {}, count=8), 1.2) == [fx.Reply(1, m.Outdated(4))], "its lease is not renewed"
    replica.core.tick(1.0 + HOLD_SECONDS)
    assert replica.core.take_effects() == [fx.Reply(2, m.Promised(4, 0, ENDS, marks={}))]
    assert replica.disk.promised == 4


def test_r15_a_leader_whose_link_has_ended_holds_nothing() -> None:
    replica = followed()
    replica.hear(2, m.Promise(4), 1.1)
    replica.core.lost(1, 1.15)
    assert replica.core.take_effects() == [fx.Reply(2, m.Promised(4, 0, ENDS, marks={}))]


def test_r15_a_link_that_this_node_gave_up_says_nothing_of_its_leader() -> None:
    replica = followed()
    replica.core.lost(1, 1.05, ended_there=False)
    assert replica.core.hears_leader(1.1)
    assert replica.hear(2, m.Promise(4), 1.1) == []


def test_r15_the_leader_itself_is_promised_a_higher_epoch_at_once() -> None:
    """It changes members."""
    assert followed().hear(1, m.Promise(4), 1.1) == [fx.Reply(1, m.Promised(4, 0, ENDS, marks={}))]


def test_r15_frames_that_came_while_a_promise_was_held_back_are_not_continued() -> None:
    """The claimant has gone; the leader begins anew with a comparison."""
    replica = followed()
    replica.hear(2, m.Promise(4), 1.1)
    assert replica.hear(1, m.Open(3, P, "s", 0), 1.1) == [fx.Reply(1, m.Outdated(4))]
    replica.core.lost(2, 1.2)
    assert replica.hear(1, m.Open(3, P, "t", 0), 1.3) == [fx.Reply(1, m.Outdated(3), True)]
    assert replica.hear(3, m.Promise(3), 1.3) == [fx.Reply(3, m.Promised(3, 0, ENDS, marks={}))]


def test_r15_a_run_that_begins_counts_as_one_that_has_just_heard_the_leader() -> None:
    replica = followed()
    core = StandbyCore(
        "a", MemoryLogs(replica.disk), replica.state, patience=lambda: 0.5, unique=lambda: "mine", now=1.1
    )
    core.received(9, m.Promise(4), RAW, 1.2)
    assert core.take_effects() == [] and core.hears_leader(1.2)
    core.tick(1.1 + HOLD_SECONDS)
    assert core.take_effects() == [fx.Reply(9, m.Promised(4, 0, ENDS, marks={}))]


def test_r15_who_led_before_it_was_started_again_waits_for_nobody() -> None:
    replica = followed()
    core = StandbyCore(
        "a", MemoryLogs(replica.disk), replica.state, patience=lambda: 0.5, unique=lambda: "mine", now=1.1
    )
    core.seen(view(3, "a"), True, 1.1)
    assert [type(each.message) for each in core.take_effects() if isinstance(each, fx.Send)] == [
        m.Poll,
        m.Poll,
    ]


def test_r15_while_its_own_claim_is_out_it_holds_nothing_for_the_leader() -> None:
    replica = followed()
    assert any(isinstance(each, fx.ClaimShard) for each in replica.claim(2.0))
    assert replica.hear(1, m.Beat(3, {}, count=9), 2.3) == [fx.Reply(1, m.Heard(3, count=NOT_LEASED))]


def test_a_leader_that_is_heard_again_ends_the_poll() -> None:
    replica = followed()
    replica.core.tick(2.0)
    assert [type(each.message) for each in replica.core.take_effects() if isinstance(each, fx.Send)] == [m.Poll] * 2
    assert replica.hear(1, m.Beat(3, {}, count=9), 2.05) == [fx.Reply(1, m.Heard(3, count=9))]
    assert not replica.answer("b", m.Polled(False, 0, 0, 0), 2.06)
    replica.core.tick(2.2)
    assert not [each for each in replica.core.take_effects() if isinstance(each, fx.ClaimShard)]


def test_c4_the_leader_that_is_to_be_replaced_is_not_waited_for() -> None:
    """Stopped, it does not answer, and its kernel takes connections."""
    replica = Replica(leader="b")
    replica.core.tick(0.5)
    replica.core.take_effects()
    assert [type(each) for each in replica.answer("c", m.Polled(False, 0, 0, 0), 0.5)] == [fx.ClaimShard]
    other = Replica(leader="")
    other.core.tick(0.5)
    other.core.take_effects()
    assert other.answer("c", m.Polled(False, 0, 0, 0), 0.5) == [], "somebody may have a longer log"


def test_c2_after_a_claim_of_which_nobody_knows_anything_another_one_is_made_soon() -> None:
    """Both name the same revision, so one of them at most comes into force."""
    replica = Replica()
    [first] = [each for each in replica.claim(0.5) if isinstance(each, fx.ClaimShard)]
    replica.core.claimed(False, False, None, 2.0)
    assert replica.core.next_deadline <= 2.0 + UNKNOWN_SECONDS
    replica.core.tick(2.0 + UNKNOWN_SECONDS)
    replica.core.take_effects()
    assert replica.core.next_deadline <= 2.5 + UNKNOWN_SECONDS
    [second] = [each for each in replica.claim(2.5 + UNKNOWN_SECONDS) if isinstance(each, fx.ClaimShard)]
    assert second.revision == first.revision


def test_c2_a_claim_that_is_in_force_after_all_is_gone_on_with_while_it_is_waited_for() -> None:
    replica = Replica()
    replica.claim(0.5)
    replica.core.claimed(False, False, None, 2.0)
    replica.see(4, "a", "mine", 2.0 + UNKNOWN_SECONDS / 2)
    assert fx.Send("c", m.Promise(4, "mine")) in replica.core.take_effects()


def test_r2_an_epoch_is_promised_to_one_claim() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(4, "one"))
    assert replica.hear(2, m.Promise(4, "other")) == [fx.Reply(2, m.Outdated(4, "one"), True)]
    assert replica.hear(3, m.Promise(4, "one")) == [fx.Reply(3, m.Promised(4, 0, ENDS, marks={}))]


def test_r1_a_claim_is_above_every_promise_that_is_known() -> None:
    replica = Replica()
    replica.core.tick(0.5)
    replica.core.take_effects()
    replica.answer("b", m.Polled(False, 9, 3, 0), 0.5)
    claimed = replica.answer("c", m.Polled(False, 3, 3, 0), 0.5)
    replica.core.tick(0.9)
    [claim] = [each for each in claimed + replica.core.take_effects() if isinstance(each, fx.ClaimShard)]
    assert (claim.record.epoch, claim.record.term) == (10, "mine")


def test_r2_members_that_a_peer_has_noted_since_are_asked_instead_of_the_records() -> None:
    replica = Replica()
    replica.core.tick(0.5)
    replica.core.take_effects()
    noted = m.Members(7, 2, ["a", "d", "e"])
    replica.answer("b", m.Polled(False, 7, 7, 0, noted), 0.5)
    replica.core.tick(2.0)
    asked = {each.peer for each in replica.core.take_effects() if isinstance(each, fx.Send)}
    assert asked == {"d", "e"}


def test_c4_a_late_answer_of_one_that_has_no_vote_any_more_ranks_nobody() -> None:
    replica = Replica()
    replica.core.tick(0.5)
    replica.core.take_effects()
    said = [effect for peer in ("d", "b", "c") for effect in replica.answer(peer, m.Polled(False, 0, 0, 0), 0.5)]
    assert [type(each) for each in said] == [fx.ClaimShard]


def test_r11_a_copy_in_doubt_serves_nobody() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(4))
    replica.state.distrust()
    assert replica.hear(1, m.FetchCopy(4, P, [])) == [fx.Reply(1, m.Outdated(4), True)]


def test_r11_a_leader_tells_a_copy_that_it_has_lost_what_it_acknowledged() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(3))
    replica.hear(1, m.Complete(3))
    [told] = [each for each in replica.hear(1, m.Distrust(3)) if isinstance(each, fx.Alarm)]
    assert told.name == "cluster.copy_doubted" and replica.disk.opened == m.DOUBTED
    replica.hear(1, m.Complete(3, m.Members(3, 1, ["a", "b", "c"])))
    assert replica.disk.opened == 3 and replica.disk.note.voters == (3, 1, ["a", "b", "c"], None)


def test_r5_what_is_committed_is_not_cut_and_the_leader_is_told() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(3))
    replica.hear(1, m.Open(3, P, "s", 0))
    replica.hear(1, m.Write(3, P, "s", 16), raw=bytes(16))
    replica.hear(1, m.Complete(3))
    replica.hear(1, m.Beat(3, {P: 2}))
    replica.hear(2, m.Promise(4), 2.0)
    said = replica.hear(2, m.Cut(4, P, ["s"], "", 0, 0, 0), 2.0)
    [ahead] = [each.message for each in said if isinstance(each, fx.Reply)]
    assert isinstance(ahead, m.Ahead) and (ahead.epoch, ahead.partition) == (4, P)
    assert [each.name for each in said if isinstance(each, fx.Alarm)] == ["cluster.copies_disagree"]
    assert replica.disk.parts[P].now.end_lsn == 2
    assert replica.hear(2, m.Beat(4, {}), 2.0) == [fx.Reply(2, m.Outdated(4), True)]  # it follows nobody


def trimmed() -> tuple[Replica, Image]:
    """Retention has removed 22 records of its copy, and two are left."""
    replica = Replica()
    image = replica.disk.parts[P].now
    image.first_lsn = 22
    image.open("s", 22)
    image.write(bytes(16))
    return replica, image


def test_r3_a_copy_that_begins_anew_has_noted_its_mark_before() -> None:
    """It led, retention removed what was committed, and nothing of its own term is in the log of who leads now."""
    replica, image = trimmed()
    replica.hear(1, m.Promise(4))
    said = replica.hear(1, m.Cut(4, P, ["s"], "", 0, 0, 0))
    assert [each.name for each in said if isinstance(each, fx.Alarm)] == ["cluster.copy_anew"]
    assert replica.disk.note.marks == {P: 22} and (image.first_lsn, image.end_lsn) == (0, 0)
    replica.hear(1, m.Open(4, P, "t", 0))
    promised = [each.message for each in replica.hear(2, m.Promise(5), 2.0) if isinstance(each, fx.Reply)][-1]
    assert isinstance(promised, m.Promised) and promised.marks == {P: 22} and promised.ends[P] == 0


def test_r5_a_copy_with_records_that_are_committed_is_not_emptied() -> None:
    replica, image = trimmed()
    replica.hear(1, m.Promise(3))
    replica.hear(1, m.Complete(3))
    replica.hear(1, m.Beat(3, {P: 23}))
    replica.hear(2, m.Promise(4), 2.0)
    said = replica.hear(2, m.Cut(4, P, ["s"], "", 0, 0, 0), 2.0)
    assert [each.name for each in said if isinstance(each, fx.Alarm)] == ["cluster.copies_disagree"]
    assert replica.disk.opened == 3 and (image.first_lsn, image.end_lsn) == (22, 24)


def test_r11_what_is_held_and_committed_is_noted_every_second() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(3))
    replica.hear(1, m.Open(3, P, "s", 0))
    replica.hear(1, m.Write(3, P, "s", 16), raw=bytes(16))
    replica.hear(1, m.Complete(3))
    replica.hear(1, m.Beat(3, {P: 1}), 0.9)
    replica.core.tick(0.99)
    assert replica.disk.note.marks == {}
    replica.core.tick(1.0)
    assert replica.disk.note.marks == {P: 1} and replica.disk.note.held == {P: (2, "s")}
