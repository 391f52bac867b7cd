from collections.abc import Iterator

import pytest

from tests.shards.links.world import World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.end()
