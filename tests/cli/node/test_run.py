"""`rumqd run` as the only node of a cluster, whose control plane is a file: every process of a node takes part."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import StreamSpec
from rumq.cli.node.run import has_log
from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Rumqd]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "cluster.name": "demo", "cluster.node": "n1", "cluster.replicas": 1, "cluster.shards": 1,
        "cluster.host": "127.0.0.1", "cluster.port": port - 1,
    }  # fmt: skip
    flags = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    made = Rumqd(tmp_path / "data", *flags)
    yield made
    made.end()


def publish(node: Rumqd, payload: str) -> None:
    ended = rumqd("pub", "-q", "1", "-p", str(node.address.port), "t", "-m", payload)
    assert ended.status == 0, ended.err


def test_a_node_serves_stops_and_goes_on_with_a_new_epoch(node: Rumqd) -> None:
    for epoch in (1, 2):
        node.start()
        publish(node, f"{epoch}")
        status = json.loads(rumqd("cluster", "status", "--json", "-d", str(node.data)).out)
        assert [each["epoch"] for each in status["shards"]] == [epoch] and status["wrong"] == []
        assert node.event("cluster.term_open")["epoch"] == epoch
        assert node.stop() == 0
    identity = json.loads((node.data / "_cluster" / "node.json").read_text())
    assert (identity["cluster"], identity["node"]) == ("demo", "n1")
    node.flags = tuple(each.replace("=n1", "=n2") for each in node.flags)
    says = rumqd("run", "--port", "0", "--data", str(node.data), *node.flags).err
    assert "belongs to node" in says or "n1" in says.replace("=n1", "")


def test_a_directory_that_has_records_is_known_as_one(tmp_path: Path) -> None:
    place: Any = SimpleNamespace(data=str(tmp_path), streams=[StreamSpec("main", ("#",), 2, "disk")])
    assert not has_log(place)
    (tmp_path / "main/g1/p1").mkdir(parents=True)
    assert not has_log(place)
    (tmp_path / "main/g1/p1/00000000000000000000-00000000.seg").touch()
    assert has_log(place)
