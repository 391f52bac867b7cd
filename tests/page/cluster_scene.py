"""A cluster of three nodes whose page is looked at: n1's gateway, as a gateway of tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, signal_all
from tests.cluster.live.test_any_node import port_of, until
from tests.gateway.conftest import Gateway


class NodeGateway(Gateway):
    """The gateway of the first node; it answers for the whole cluster."""

    def __init__(self, live: LiveCluster, secret: str) -> None:
        self.live, self.secrets = live, {"ops": secret}
        self.port = until(lambda: port_of(live.nodes[0]), live.nodes[0].last_words)

    def kill_last(self) -> None:
        """The last node ends at once, and stays away."""
        dead = self.live.nodes[-1]
        self.live.cluster.held.add(dead.name)
        signal_all([dead.pid], 9)


@contextmanager
def cluster(folder: Path) -> Iterator[NodeGateway]:
    """Three nodes with a gateway each, and three etcd; returns once every node serves and n1's page is ready."""
    tokens = folder / "tokens"
    words = [word for role in ("read", "publish", "administer") for word in ("--role", role)]
    made = rumqd("token", "add", "ops", *words, "--file", str(tokens))
    assert made.status == 0, made.err
    settings = ("gateway.port=-1", "gateway.host=127.0.0.1", f"gateway.tokens_file={tokens}")
    live = LiveCluster(folder / "cluster", settings=settings)
    try:
        live.start()
        gateway = NodeGateway(live, made.out.strip())
        until(lambda: gateway.ask("GET", "/readyz", token=None).status == 200, live.nodes[0].last_words)
        yield gateway
    finally:
        live.stop()
