"""Copies are packed only while all that have one are here, and say that they know packed files."""

import msgspec
import pytest

from rumq.cluster.control.records import NodeRecord, ShardRecord, Versioned, View
from rumq.cluster.replication.packing_members import PATIENCE_SECONDS, PackingPatience, all_pack


def node(name: str, *, packs: bool = True) -> NodeRecord:
    return NodeRecord(
        id=f"{name}#1", host="", port=1, mqtt=[], zone="", incarnation="", version="", feature_level=1, has_log=False,
        clock_us=0, packs=packs,
    )  # fmt: skip


def view(*nodes: NodeRecord, learners: tuple[str, ...] = (), is_current: bool = True) -> View:
    record = ShardRecord(epoch=1, leader="a#1", claim="", replicas=["a#1", "b#1", "c#1"], learners=list(learners))
    return View(
        cluster="c", node="a#1", replicas=3, nodes=list(nodes), shards=[Versioned(record, 1)], is_current=is_current
    )


A, B, C, D = map(node, "abcd")


@pytest.mark.parametrize(
    ("why", "seen", "expected"),
    [
        ("all are here", view(A, B, C), True),
        ("another node has no copy", view(A, B, C, node("d", packs=False)), True),
        ("one is away", view(A, B), False),
        ("one has an earlier version", view(A, B, node("c", packs=False)), False),
        ("a learner is away", view(A, B, C, learners=("d#1",)), False),
        ("a learner is here", view(A, B, C, D, learners=("d#1",)), True),
        ("the control plane does not answer", view(A, B, C, is_current=False), False),
    ],
)
def test_who_must_be_here(why: str, seen: View, expected: bool) -> None:
    assert all_pack(seen, 0) is expected, why


def test_a_shard_that_is_not_known_is_not_packed() -> None:
    assert not all_pack(view(A, B, C), 1)


def test_a_node_of_an_earlier_version_does_not_say_that_it_packs() -> None:
    raw = msgspec.json.decode(msgspec.json.encode(A))
    del raw["packs"]
    assert not msgspec.convert(raw, NodeRecord).packs


def test_a_node_that_has_just_gone_is_waited_for_after_a_change_of_leaders() -> None:
    """It may come back with an earlier version, and its copy ends where the segments of the last leader do."""
    patience = PackingPatience(0)
    assert not patience.is_over(100.0)
    patience.seen(view(A, B, C), 100.0)
    patience.seen(view(A, B, C), 105.0)
    assert not patience.is_over(100.0 + PATIENCE_SECONDS - 0.1) and patience.is_over(100.0 + PATIENCE_SECONDS)
    later = view(A, B, C)
    record = msgspec.structs.replace(later.shards[0].record, epoch=2)
    patience.seen(msgspec.structs.replace(later, shards=[Versioned(record, 2)]), 200.0)
    assert not patience.is_over(200.0 + PATIENCE_SECONDS - 0.1) and patience.is_over(200.0 + PATIENCE_SECONDS)
    patience.seen(view(A, B), 300.0)
    assert not patience.is_over(400.0)
    patience.seen(view(A, B, C), 400.0)
    assert not patience.is_over(401.0) and patience.is_over(400.0 + PATIENCE_SECONDS)
