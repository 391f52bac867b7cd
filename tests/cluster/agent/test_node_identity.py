"""Which node of which cluster a data directory belongs to."""

from pathlib import Path

import pytest

from rumq.cluster.agent.node_identity import identity_path, met_cluster, node_identity
from rumq.cluster.control.errors import ControlRefused


def test_a_disk_keeps_its_id_and_another_disk_has_another(tmp_path: Path) -> None:
    first = node_identity(tmp_path / "a", "demo", "n1", has_log=False)
    assert first.id == f"n1#{first.disk}" and len(first.disk) == 8
    assert node_identity(tmp_path / "a", "demo", "n1", has_log=True) == first  # of its first start
    assert node_identity(tmp_path / "b", "demo", "n1", has_log=False).disk != first.disk


@pytest.mark.parametrize(("cluster", "node", "key"), [("other", "n1", "name"), ("demo", "n2", "node")])
def test_a_directory_of_another_node_or_cluster_is_refused(tmp_path: Path, cluster: str, node: str, key: str) -> None:
    node_identity(tmp_path, "demo", "n1", has_log=False)
    with pytest.raises(ControlRefused) as caught:
        node_identity(tmp_path, cluster, node, has_log=False)
    said = str(caught.value)
    assert str(identity_path(tmp_path)) in said and f"set cluster.{key} to" in said
    assert "'n1' of cluster 'demo'" in said and "empty" in said


def test_the_id_of_the_cluster_is_kept_and_another_one_refused(tmp_path: Path) -> None:
    identity = met_cluster(tmp_path, node_identity(tmp_path, "demo", "n1", has_log=False), "0a")
    assert node_identity(tmp_path, "demo", "n1", has_log=False).cluster_id == "0a"
    assert met_cluster(tmp_path, identity, "0a") == identity
    with pytest.raises(ControlRefused, match=r"with id 0a.*with id 0b"):
        met_cluster(tmp_path, identity, "0b")


def test_a_damaged_file_is_not_taken_for_a_new_disk(tmp_path: Path) -> None:
    node_identity(tmp_path, "demo", "n1", has_log=False)
    identity_path(tmp_path).write_text("{")
    with pytest.raises(ControlRefused, match="restore the file"):
        node_identity(tmp_path, "demo", "n1", has_log=False)
