"""A world with an edge, and certificates."""

from collections.abc import Iterator

import pytest

from tests.cluster.edge.world import World
from tests.net.conftest import authorities as authorities
from tests.net.conftest import trusting as trusting


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.end()
