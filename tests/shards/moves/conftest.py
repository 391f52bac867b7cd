"""A shard that is led by one process after another."""

from collections.abc import Iterator

import pytest

from tests.shards.moves.world import World


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    faults = [told for told, _ in made.process.events if told in ("task.failed", "client.crashed")]
    made.end()
    assert not faults
