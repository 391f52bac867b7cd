"""Every node of a cluster answers the operator for the whole cluster, also while a node is dead.

Three nodes with TLS between them, three etcd, a gateway at each node. Some 20 s."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from examples.cluster import Member
from rumq.net.client_placement import home_of
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, signal_all
from tests.conformance.peer import Peer
from tests.net.authorities import Authorities
from tests.net.conftest import authorities as authorities

SECONDS_MAX = 40.0  # for what takes one or two on a machine that does nothing else

pytestmark = [
    pytest.mark.timeout(200),
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
]


class Gateways:
    """secret: of a token that may do everything, at all nodes"""

    def __init__(self, live: LiveCluster, secret: str) -> None:
        self.live, self._secret = live, secret

    def ask(self, node: Member, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and answer; status 0: nobody listens."""
        headers = {"authorization": f"Bearer {self._secret}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port_of(node), timeout=30)
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            return 0, {}
        return answer.status, text.decode() if path == "/metrics" else json.loads(text)

    def get(self, node: Member, name: str) -> Any:
        status, answer = self.ask(node, "GET", f"/api/v1/{name}")
        return answer if status == 200 else {"status": status, **answer}

    def clients(self, node: Member) -> set[str]:
        rows = self.get(node, "clients?client=c*").get("clients", [])
        return {row["client_id"] for row in rows}


def port_of(node: Member) -> int:
    """Of its gateway, by its events; 0 before it listens."""
    bound = [
        json.loads(line)["port"]
        for line in node.logs.read_text().splitlines()
        if '"listener.bound"' in line and '"http"' in line
    ]
    return int(bound[-1]) if bound else 0


def until(is_so: Callable[[], Any], what: Callable[[], object]) -> Any:
    end = time.monotonic() + SECONDS_MAX
    while not (found := is_so()):
        assert time.monotonic() < end, what()
        time.sleep(0.1)
    return found


def cluster_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("rumq_cluster", "rumq_uptime", "rumq_up"))]


def asked_at(node: Member) -> set[str]:
    """Clients by `rumqd ask`, with nothing but the node's data directory."""
    said = rumqd("ask", "clients", "--client", "c*", "--json", "--data", str(node.data))
    return {row["client_id"] for row in json.loads(said.out)["clients"]} if said.status == 0 else set()


def seen_gone(gateways: Gateways, node: Member, dead: Member) -> Any:
    """The cluster as a node sees it, once it sees that another one is gone and every shard is led."""
    found = gateways.get(node, "cluster")
    gone = [row["node"] for row in found.get("nodes", ()) if not row["alive"]]
    return found if gone == [dead.name] and all(row["leader"] for row in found["shards"]) else None


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory, authorities: Authorities) -> Iterator[Gateways]:
    folder = tmp_path_factory.mktemp("any-node")
    tokens = folder / "tokens"
    words = [word for role in ("read", "publish", "administer") for word in ("--role", role)]
    made = rumqd("token", "add", "ops", *words, "--file", str(tokens))
    assert made.status == 0, made.err
    named = authorities.node("demo", "n1", "n2", "n3")
    files = {"certificate": authorities.path(named), "key": authorities.path(named, "key")}
    tls = [f"cluster.tls_{name}={path}" for name, path in (files | {"authority": authorities.path("ca")}).items()]
    settings = ("gateway.port=-1", "gateway.host=127.0.0.1", f"gateway.tokens_file={tokens}")
    live = LiveCluster(folder / "cluster", settings=[*settings, *tls])
    live.start()
    yield Gateways(live, made.out.strip())
    live.stop()


def test_any_node_answers_and_acts_for_all_and_goes_on_when_one_dies(gateways: Gateways) -> None:
    live, count = gateways.live, gateways.live.cluster.shards
    nodes = live.nodes
    names = [
        next(f"c{number}" for number in range(100) if home_of(f"c{number}", count) == shard) for shard in range(count)
    ]
    peers = [Peer(address, 4, deadline_s=30) for address in live.addresses]
    for peer, name in zip(peers, names, strict=True):
        assert not peer.connect(name, clean=False).code  # its session stays

    # Each node sees all clients, the sockets of the data directory too, and each is ready.
    for node in nodes:
        until(
            lambda node=node: gateways.clients(node) == set(names),
            lambda node=node: gateways.get(node, "clients"),
        )
        until(lambda node=node: gateways.ask(node, "GET", "/readyz")[0] == 200, node.last_words)
        until(lambda node=node: asked_at(node) == set(names), lambda node=node: asked_at(node))
        cluster = gateways.get(node, "cluster")
        assert (cluster["enabled"], cluster["cluster"], cluster["node"]) == (True, "demo", node.name)
        assert sorted(row["node"] for row in cluster["nodes"]) == ["n1", "n2", "n3"]
        assert [row["leader"] is not None for row in cluster["shards"]] == [True] * count

    # Published at each node, whatever it leads; read at each node from its own copy.
    for node in nodes:
        message = {"topic": f"plant/{node.name}", "payload": "on", "qos": 1}
        status, answer = gateways.ask(node, "POST", "/api/v1/publish", message)
        assert (status, answer.get("accepted")) == (200, 1), answer
    for node in nodes:
        until(
            lambda node=node: len(gateways.get(node, "records?topic=plant/%2B").get("records", [])) == 3,
            lambda node=node: gateways.get(node, "records?topic=plant/%2B"),
        )

    # An action from a node that has nothing to do with the client.
    leaders = {row["shard"]: row["leader"] for row in gateways.get(nodes[0], "cluster")["shards"]}
    other = next(node for node in nodes if node.name != leaders[1])

    def is_dismissed() -> bool:
        with Peer(live.addresses[1], 4, deadline_s=30) as peer:  # a leader that changes ends connections, too
            if peer.connect(names[1], clean=False).code:
                return False
            status, answer = gateways.ask(other, "POST", "/api/v1/actions/disconnect", {"client": names[1]})
            if (status, answer.get("disconnected")) != (200, 1):
                return False
            peer.rest_until_end()
            return True

    until(is_dismissed, lambda: gateways.get(other, "clients"))

    # Each shard is told by one node's metrics, and the cluster by all.
    def are_told() -> bool:
        texts = [str(gateways.ask(node, "GET", "/metrics")[1]) for node in nodes]
        return all('rumq_cluster_nodes{state="alive"} 3.0' in text for text in texts) and all(
            sum(line.format(shard) in text for text in texts) == 1
            for shard in range(count)
            for line in ('rumq_uptime_seconds{{shard="{}"}}', 'rumq_cluster_in_sync{{shard="{}"}} 3.0')
        )

    until(are_told, lambda: [cluster_lines(str(gateways.ask(node, "GET", "/metrics")[1])) for node in nodes])

    # Events of leaders anywhere, and of this node's other processes.
    found = until(
        lambda: (
            {row["source"] for row in gateways.get(nodes[0], "events?limit=200").get("events", [])}
            >= {"shard", "agent"}
        ),
        lambda: gateways.get(nodes[0], "events?limit=200"),
    )
    assert found

    # A shard is handed over by order of a node that neither leads it nor will.
    def hand_over() -> tuple[bool, str]:
        leader = gateways.get(nodes[0], "cluster")["shards"][0]["leader"]
        by, to = [node for node in nodes if node.name != leader]
        moved = rumqd("cluster", "move", "0", "--to", to.name, "--data", str(by.data))
        return moved.status == 0 and f"shard 0 is led by {to.name}#" in moved.out, moved.err

    until(lambda: hand_over()[0], lambda: hand_over()[1])

    # A node dies: what is there is answered at once, and soon everything.
    dead = next(node for node in nodes if node.name == leaders[2])
    rest = [node for node in nodes if node is not dead]
    live.cluster.held.add(dead.name)
    signal_all([dead.pid], 9)
    for node in rest:
        found = gateways.get(node, "clients?client=c*")
        assert found.get("status") in (None, 503), found
        if found.get("missing"):
            assert all("n" in each["why"] for each in found["missing"])
    for node in rest:
        until(
            lambda node=node: gateways.clients(node) == set(names),
            lambda node=node: gateways.get(node, "clients"),
        )
        until(lambda node=node: gateways.ask(node, "GET", "/readyz")[0] == 200, node.last_words)
        cluster = until(
            lambda node=node: seen_gone(gateways, node, dead), lambda node=node: gateways.get(node, "cluster")
        )
        assert sum(row["failovers"] for row in cluster["shards"]) >= 1
        assert any(dead.name in each for each in cluster["wrong"])
    for peer in peers:
        peer.close()
