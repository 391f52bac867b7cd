"""Series of a cluster: what each node sees, and the copies of the shards that it leads; nothing of a broker alone."""

from prometheus_client.parser import text_string_to_metric_families

from rumq.admin.answers import Cluster
from rumq.admin.cluster_rows import ControlRow, NodeRow, ShardCopies, TermRow
from rumq.gateway.metrics import metric_table as t
from rumq.gateway.metrics.exposition import exposition
from tests.gateway.metrics.test_metric_docs import figures

CLUSTER = Cluster(
    enabled=True, cluster="plant", id="c1", node="n2", is_current=True,
    nodes=[
        NodeRow(node="n1", id="n1#0", alive=True, leads=[0], copies=[0]),
        NodeRow(node="n2", id="n2#0", alive=True, leaves=True, leads=[], copies=[0]),
        NodeRow(node="n3", id="n3#0", alive=False, leads=[], copies=[0, 1]),
    ],
    shards=[
        ShardCopies(
            shard=0, leader="n1", epoch=3, members=["n1", "n2", "n3"], state="behind", failovers=2, hand_overs=1
        ),
        ShardCopies(shard=1, leader=None, epoch=1, members=["n3"], state="no leader"),
    ],
    control=ControlRow(kind="etcd", lost_seconds=0.0, renew_seconds=0.004, requests=99), wrong=["this", "and that"],
)  # fmt: skip
TERM = TermRow(
    shard=0, epoch=3, leader="n1#0", is_open=True, has_quorum=True, in_sync=["n1#0", "n2#0"],
    behind_records={"n2#0": 4, "n3#0": None}, behind_bytes={"n2#0": 4096, "n3#0": None},
)  # fmt: skip


def series(cluster: Cluster | None, term: TermRow | None) -> dict[str, float]:
    led = figures()
    led.term = term
    text = exposition([led], {}, {}, cluster).decode()
    return {
        sample.name + "".join(f" {sample.labels[label]}" for label in metric.labels): sample.value
        for family in text_string_to_metric_families(text)
        for metric in (*t.CLUSTER, *t.LEADER)
        if metric.name.removesuffix("_total") == family.name
        for sample in family.samples
    }


def test_nodes_shards_and_copies_are_series() -> None:
    assert series(CLUSTER, TERM) == {
        "rumq_cluster_nodes alive": 2, "rumq_cluster_nodes gone": 1, "rumq_cluster_node_drained": 1,
        "rumq_cluster_wrong": 2,
        "rumq_cluster_control_up": 1, "rumq_cluster_control_lost_seconds": 0,
        "rumq_cluster_control_renew_seconds": 0.004, "rumq_cluster_control_requests_total": 99,
        "rumq_cluster_leader 0 n1": 1, "rumq_cluster_led 0": 1, "rumq_cluster_led 1": 0,
        "rumq_cluster_epoch 0": 3, "rumq_cluster_epoch 1": 1, "rumq_cluster_members 0": 3, "rumq_cluster_members 1": 1,
        "rumq_cluster_members_gone 0": 1, "rumq_cluster_members_gone 1": 1,
        "rumq_cluster_failovers_total 0": 2, "rumq_cluster_failovers_total 1": 0,
        "rumq_cluster_hand_overs_total 0": 1, "rumq_cluster_hand_overs_total 1": 0,
        "rumq_cluster_quorum 0": 1, "rumq_cluster_in_sync 0": 2,
        "rumq_cluster_behind_records 0 n2": 4, "rumq_cluster_behind_bytes 0 n2": 4096,
    }  # fmt: skip


def test_a_broker_alone_has_none_of_them() -> None:
    assert series(None, None) == series(Cluster(enabled=False), None) == {}


def test_a_node_that_leads_nothing_tells_of_the_cluster_alone() -> None:
    names = {name.partition(" ")[0] for name in series(CLUSTER, None)}
    assert names == {metric.name for metric in t.CLUSTER}
