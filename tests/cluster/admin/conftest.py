import pytest

from tests.net.conftest import authorities as authorities
from tests.shards.links.world import World


@pytest.fixture
def leaders() -> World:
    """The test ends it."""
    return World()
