"""Harms to a live cluster of three nodes and three etcd: nothing acknowledged is lost, or comes twice at QoS 2.

Four kinds in the gate. The long form is 2,000 harms of all kinds: `pytest tests/cluster/live -m long`. Gaps and
pictures: `python -m tests.cluster.live`."""

import os
import shutil
from pathlib import Path

import pytest

from tests.cluster.live.harm import IN_NAMESPACES, ON_LOOPBACK, ON_SMALL_DISKS
from tests.cluster.live.network import Network
from tests.cluster.live.run import LiveRun
from tests.cluster.live.time_travel import BACK_IN_TIME

LONG_EPISODES = int(os.environ.get("RUMQ_EPISODES", "40"))
LONG_HARMS = 50
GATE = ["kill-node", "pause-node", "kill-etcd-leader", "kill-all-nodes"]
# What waits for no minute: ten kinds.
TEN = [
    "kill-node", "kill-shard", "kill-child", "pause-node", "short-pause", "kill-etcd-leader", "kill-two-nodes",
    "kill-node-and-etcd-leader", "kill-all-nodes", "etcd-away",
]  # fmt: skip

pytestmark = pytest.mark.skipif(
    shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None,
    reason="etcd is not installed: apt-get install etcd-server",
)


def kinds_here() -> list[str]:
    """What can be done on this machine by this user."""
    if Network.why_not():
        return [*ON_LOOPBACK, *BACK_IN_TIME]
    return [*ON_LOOPBACK, *BACK_IN_TIME, *IN_NAMESPACES, *ON_SMALL_DISKS]


def check_harms_in_turn(folder: Path, kinds: list[str], rounds: int) -> None:
    """Each kind once a round, in an order of the seed: one after another, and none of them may lose anything."""
    result = LiveRun(folder, 20_263, kinds, away_s=4.0).run(rounds * len(kinds))
    assert not result.faults, result.report()
    assert sorted({harm.split()[0] for harm in result.harms}) == sorted(kinds), "each of them happened"
    assert result.lost == 0 and result.acknowledged > 50 * rounds * len(kinds)


@pytest.mark.timeout(400)
def test_harms_of_four_kinds_lose_nothing(tmp_path: Path) -> None:
    check_harms_in_turn(tmp_path, GATE, 1)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_twenty_harms_lose_nothing(tmp_path: Path) -> None:
    check_harms_in_turn(tmp_path, TEN, 2)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_what_goes_back_in_time_loses_nothing(tmp_path: Path) -> None:
    """etcd restored while a node sleeps, an old disk, a node without its partitions: one at a time, with etcd there."""
    result = LiveRun(tmp_path, 20_265, list(BACK_IN_TIME)).run(len(BACK_IN_TIME))
    assert not result.faults, result.report()
    assert result.lost == 0 and result.acknowledged > 300


@pytest.mark.long
@pytest.mark.skipif(bool(Network.why_not()), reason=Network.why_not() or "there are namespaces")
@pytest.mark.timeout(200)
def test_a_leader_that_is_cut_off_loses_nothing(tmp_path: Path) -> None:
    result = LiveRun(tmp_path, 20_264, list(IN_NAMESPACES)).run(len(IN_NAMESPACES))
    assert not result.faults, result.report()
    assert result.lost == 0 and result.acknowledged > 500


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(LONG_EPISODES))
def test_many_harms_lose_nothing(tmp_path: Path, seed: int) -> None:
    """50 harms an episode: 2,000 with the default number of episodes; etcd is away for a minute in them."""
    result = LiveRun(tmp_path, seed, kinds_here()).run(LONG_HARMS)
    assert not result.faults, result.report()
