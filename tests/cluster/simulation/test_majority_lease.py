"""While a leader holds the lease of the majority, nobody else has committed anything: whatever fails, and whenever."""

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from rumq.cluster.replication import majority_lease
from rumq.cluster.replication.standby import leader_silence
from tests.cluster.simulation import schedule
from tests.cluster.simulation.ledger import Wrong
from tests.cluster.simulation.process import Node
from tests.cluster.simulation.world import World

RUNS = 150
NEARBY = 1500


class LeasedWorld(World):
    """Checks, whenever a leader commits or is about to be read from, that no older one may be read from."""

    newest = 0  # the highest epoch in which something was committed

    def committed(self, node: Node, epoch: int, partition: str, lsn: int) -> None:
        super().committed(node, epoch, partition, lsn)
        self.newest = max(self.newest, epoch)
        self.look()

    def _publish(self) -> None:
        self.look()
        super()._publish()

    def look(self) -> None:
        for leader in self.leaders:
            if leader.core.holds_lease(self.now):
                self.count["leases"] += 1
                if leader.core.epoch < self.newest:
                    raise Wrong(
                        f"{leader.core.node} holds the lease of epoch {leader.core.epoch}, and epoch {self.newest} has"
                        " committed"
                    )


@pytest.fixture(autouse=True)
def _leased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "World", LeasedWorld)


def test_no_leader_holds_the_lease_once_a_later_one_has_committed() -> None:
    leases = sum(schedule.run(seed)["leases"] for seed in range(RUNS))
    assert leases > 50 * RUNS, "leaders do hold it"


def too_long(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(majority_lease, "LEASE_SECONDS", 2 * majority_lease.HOLD_SECONDS)


def not_held_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leader_silence, "HOLD_SECONDS", 0.0)


def longer_than_its_link(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(majority_lease.MajorityLease, "forget", lambda self, peer: None)


def forgotten_by_a_restart(patch: pytest.MonkeyPatch) -> None:
    init = leader_silence.LeaderSilence.__init__

    def blank(self: leader_silence.LeaderSilence, *args: Any, **more: Any) -> None:
        init(self, *args, **more)
        self._heard_at = -inf

    patch.setattr(leader_silence.LeaderSilence, "__init__", blank)


@pytest.mark.parametrize(
    ("mutant", "seed"),
    [(too_long, 14), (longer_than_its_link, 29), (not_held_back, 190), (forgotten_by_a_restart, 1355)],
)
def test_without_one_of_its_parts_the_rule_is_broken(
    monkeypatch: pytest.MonkeyPatch, mutant: Callable[[pytest.MonkeyPatch], None], seed: int
) -> None:
    """Seeds that find it; where other changes have moved the schedules, others nearby do."""
    mutant(monkeypatch)
    with pytest.raises(Wrong, match="holds the lease"):
        play(range(seed, seed + NEARBY))


def play(seeds: range) -> None:
    for seed in seeds:
        schedule.run(seed)
