"""The control plane of one node, in a file."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from rumq.cluster.control.control_plane import NOT_THERE, Replaced
from rumq.cluster.control.errors import ControlRefused, OutcomeUnknown
from rumq.cluster.control.local_control import LocalControl
from rumq.cluster.control.records import ClusterRecord, ShardRecord
from tests.cluster.agent.world import node_record

CLUSTER = ClusterRecord(id="a", shards=3, replicas=1, feature_level=1, created_us=0)


def record(claim: str) -> ShardRecord:
    return ShardRecord(epoch=1, leader="n1#00", claim=claim, replicas=["n1#00"])


def run(main: Callable[[], Awaitable[None]]) -> None:
    trio.run(main)


def test_what_was_answered_is_there_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        plane = LocalControl(tmp_path)
        assert await plane.cluster_record(CLUSTER) == CLUSTER
        done = await plane.replace(1, 0, record("a"))
        assert done.won and done.now is not None
        again = LocalControl(tmp_path)
        assert (
            await again.cluster_record(ClusterRecord(id="b", shards=1, replicas=1, feature_level=1, created_us=0))
            == CLUSTER
        )
        assert await again.shards() == [NOT_THERE, done.now]
        assert await again.nodes() == []
        await again.announce(node_record("n1"))
        assert await again.nodes() == [node_record("n1")]
        next_done = await again.replace(1, done.now.revision, record("b"))
        assert next_done.now is not None and next_done.now.revision > done.now.revision

    run(main)


def test_a_record_is_replaced_by_its_revision_only(tmp_path: Path) -> None:
    async def main() -> None:
        plane = LocalControl(tmp_path)
        with pytest.raises(OutcomeUnknown):
            await plane.settle(0, 0, "a")
        first = await plane.replace(0, 0, record("a"))
        assert await plane.replace(0, 0, record("b")) == Replaced(False, first.now)
        assert await plane.settle(0, 0, "a") == first
        assert await plane.settle(0, 0, "b") == Replaced(False, first.now)

    run(main)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_cluster").mkdir()
    (tmp_path / "_cluster/control.json").write_text("{")
    with pytest.raises(ControlRefused, match=r"control\.json.*restore"):
        LocalControl(tmp_path)


def test_the_layout_stays_and_the_only_node_is_not_removed(tmp_path: Path) -> None:
    async def main() -> None:
        assert await LocalControl(tmp_path).layout({"main": 2}) == {"main": 2}
        again = LocalControl(tmp_path)
        assert await again.layout({"main": 3}) == {"main": 2}
        assert (await again.snapshot()).layout == {"main": 2}
        with pytest.raises(ControlRefused, match="the only node"):
            await again.note_removed("n1#00", is_removed=True)

    run(main)
