"""`rumqd run` as the only node of a cluster, whose control plane is a file: every process of a node takes part."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.peers.peer import free_port
from commitlog import StreamSpec
from rumq.process.node.node_process import has_log
from tests.broker_process import ENVIRONMENT, Rumqd
from tests.cli.conftest import rumqd


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Rumqd]:
    port = free_port()
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


def test_a_data_directory_may_be_deeper_than_the_address_of_a_unix_socket(tmp_path: Path) -> None:
    """unix(7): 107 bytes. The leader and the edge reach the agent all the same."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    port = free_port()
    settings = {
        "cluster.name": "demo", "cluster.node": "n1", "cluster.replicas": 1, "cluster.shards": 1,
        "cluster.host": "127.0.0.1", "cluster.port": port - 1,
    }  # fmt: skip
    node = Rumqd(deep / "data", *[part for key, value in settings.items() for part in ("--set", f"{key}={value}")])
    try:
        node.start()
        publish(node, "x")
        status = json.loads(rumqd("cluster", "status", "--json", "-d", str(node.data)).out)
        assert status["wrong"] == [] and {each["role"] for each in status["processes"]} >= {"shard", "edge"}
        assert node.stop() == 0
    finally:
        node.end()


def test_who_takes_a_shard_over_imports_nothing_and_no_process_what_no_setting_asks_for(
    node: Rumqd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is imported before the fork is in memory once, and whoever takes a shard over does not wait for it."""
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPROFILEIMPORTTIME", "1")
    node.start()
    publish(node, "served by every process")
    assert node.stop() == 0
    leads = node.events.index(node.event("cluster.leads"))
    assert [text(each) for each in node.events[leads:] if "rumq" in text(each)] == []
    names = {text(each).rpartition("|")[2].strip().partition(".")[0] for each in node.events}
    assert "trio" in names
    assert names & {"jwt", "httpx", "pyarrow", "numpy", "starlette"} == set()


def text(event: dict[str, Any]) -> str:
    """A line that is no event, as Python's own are."""
    return str(event.get("text", ""))
