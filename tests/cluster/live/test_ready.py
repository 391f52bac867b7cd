"""/readyz of real nodes, as a balancer asks it: drained, back, cut off, back. Some 40 s, in network namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from examples.cluster import Member
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster
from tests.cluster.live.network import Network
from tests.cluster.live.test_any_node import port_of

SECONDS_MAX = 60.0

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
    pytest.mark.skipif(bool(Network.why_not()), reason=Network.why_not() or "there are namespaces"),
]


class Nodes:
    def __init__(self, live: LiveCluster, network: Network) -> None:
        self.live, self.network = live, network

    def ready(self, node: Member) -> str:
        """What its gateway answers: the status, and why not."""
        url = f"http://127.0.0.1:{port_of(node)}/readyz"
        command = [
            "ip",
            "netns",
            "exec",
            self.network.space(node.name),
            "curl",
            "-s",
            "-m",
            "10",
            "-w",
            " %{http_code}",
            url,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout

    def until(self, node: Member, status: str, why: str = "") -> None:
        until_so(lambda: (said := self.ready(node)).endswith(status) and why in said, lambda: self.ready(node))


def until_so(is_so: Callable[[], bool], what: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < end, what()
        time.sleep(0.2)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    names = ["n1", "n2", "n3", "etcd1", "etcd2", "etcd3"]
    network = Network(names)
    live = LiveCluster(tmp_path / "cluster", network=network, settings=("gateway.port=-1",))
    try:
        network.make()
        live.start()
        yield Nodes(live, network)
    finally:
        live.stop()
        network.remove()


def test_a_node_is_ready_while_it_can_serve_clients(nodes: Nodes) -> None:
    n1, n2, n3 = nodes.live.nodes
    for node in (n1, n2, n3):
        nodes.until(node, "200")

    done = rumqd("cluster", "drain", "--data", str(n1.data))
    assert done.status == 0, done.err
    nodes.until(n1, "503", "drained")
    for node in (n2, n3):  # one of them has taken over what n1 led, and begins with its sessions
        nodes.until(node, "200")
    assert rumqd("cluster", "drain", "--back", "--data", str(n1.data)).status == 0
    nodes.until(n1, "200")

    others = ["n1", "n2", "etcd1", "etcd2", "etcd3"]
    for other in others:
        nodes.network.cut("n3", other)
        nodes.network.cut(other, "n3")
    nodes.until(n3, "503")
    for node in (n1, n2):
        nodes.until(node, "200")  # that another node is gone turns nobody away
    nodes.network.heal()
    nodes.until(n3, "200")
