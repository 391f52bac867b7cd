"""A world with an edge, and certificates."""

from collections.abc import Iterator

import pytest

from rumq.cluster.connections.node_tls import NodeTls
from tests.cluster.edge.world import World
from tests.net.conftest import authorities as authorities
from tests.net.conftest import trusting as trusting


@pytest.fixture
def node_tls() -> NodeTls | None:
    """Of connections between nodes."""
    return None


@pytest.fixture
def world(node_tls: NodeTls | None) -> Iterator[World]:
    made = World(tls=node_tls)
    yield made
    made.end()
