"""A standby: it follows one link, takes office when nobody leads, and writes before it answers. docs/replication.md."""

from random import Random

from rumq.cluster.control.records import ShardRecord, Versioned
from rumq.cluster.replication import effects as fx
from rumq.cluster.replication import messages as m
from rumq.cluster.replication.standby_core import StandbyCore
from tests.cluster.simulation.disk import Disk, MemoryLogs, MemoryState

P, Q = "main/g0/p0", "main/g0/p1"
RAW = memoryview(b"")
ENDS = {P: 0, Q: 0}


class Replica:
    """Node "a" of three."""

    def __init__(self, epoch: int = 3, leader: str = "b") -> None:
        self.disk = Disk(Random(0))
        self.state = MemoryState(self.disk)
        self.core = StandbyCore(
            "a", MemoryLogs(self.disk), self.state, patience=lambda: 0.5, unique=lambda: "mine", now=0.0
        )
        self.see(epoch, leader)

    def see(self, epoch: int, leader: str, claim: str = "theirs", now: float = 0.0) -> None:
        self.core.seen(view(epoch, leader, claim), True, now)

    def hear(
        self, link: int, message: m.ReplicaMessage, now: float = 0.0, raw: bytes = b""
    ) -> list[fx.Effect]:
        self.core.received(link, message, memoryview(raw), now)
        return self.core.take_effects()

    def answer(self, peer: str, message: m.ReplicaMessage, now: float = 0.0) -> list[fx.Effect]:
        self.core.answered(peer, message, RAW, now)
        return self.core.take_effects()

    def claim(self, now: float = 0.5) -> list[fx.Effect]:
        """It polls, nobody hears a leader, and it claims."""
        self.core.tick(now)
        self.core.take_effects()
        said = self.answer("b", m.Polled(False, 0, 0, 0), now) + self.answer(
            "c", m.Polled(False, 0, 0, 0), now
        )
        self.core.tick(now + 0.2)
        return said + self.core.take_effects()


def view(epoch: int, leader: str, claim: str = "theirs") -> Versioned:
    return Versioned(
        ShardRecord(epoch=epoch, leader=leader, claim=claim, replicas=["a", "b", "c"]), epoch + 1
    )


def test_r2_a_promise_is_on_disk_before_it_is_answered_and_older_ones_are_refused() -> None:
    replica = Replica()
    assert replica.hear(1, m.Promise(3)) == [fx.Reply(1, m.Promised(3, 0, ENDS))]
    assert replica.disk.promised == 3
    assert replica.hear(2, m.Promise(2)) == [fx.Reply(2, m.Outdated(3), True)]


def test_r5_frames_of_another_link_or_epoch_are_refused() -> None:
    replica = Replica()
    replica.hear(1, m.Promise(3))
    assert replica.hear(2, m.Open(3, P, "s", 0)) == [fx.Reply(2, m.Outdated(3), True)]
    assert replica.hear(1, m.Open(2, P, "s", 0)) == [fx.Reply(1, m.Outdated(3), True)]
    replica.hear(2, m.Promise(4))
    assert replica.hear(1, m.Open(3, P, "s", 0)) == [fx.Reply(1, m.Outdated(4), True)]


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
    assert replica.core.take_effects() == [fx.Send("b", m.Promise(4)), fx.Send("c", m.Promise(4))]
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
    assert isinstance(asked[0].message, m.Fetch)
    assert (asked[0].peer, asked[0].message.partition) == ("b", P)


def test_c2_a_claim_of_unknown_outcome_is_settled_by_the_record() -> None:
    replica = Replica()
    replica.claim()
    replica.core.claimed(False, False, None, 1.0)
    assert replica.core.take_effects() == []
    replica.see(4, "a", "mine", 1.1)
    assert fx.Send("b", m.Promise(4)) in replica.core.take_effects()


def test_whoever_has_won_the_epoch_that_this_replica_claims_too_is_promised_it() -> None:
    replica = Replica()
    replica.claim()
    assert replica.hear(1, m.Promise(4), 0.8) == [fx.Reply(1, m.Promised(4, 0, ENDS))]


def test_r14_a_claimant_that_waits_for_promises_or_a_log_says_that_it_lives() -> None:
    replica = Replica()
    replica.claim()
    replica.core.claimed(True, True, view(4, "a", "mine"), 0.7)
    asked = replica.answer("b", m.Promised(4, 3, {P: 9, Q: 0}), 0.7)
    assert any(isinstance(each, fx.Send) and isinstance(each.message, m.Fetch) for each in asked)
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
    replica.state.opened = m.DOUBTED
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
