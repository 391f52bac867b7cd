"""Sites of nodes, and certificates."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.node.world import Site
from tests.net.conftest import authorities as authorities


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def make(node: str = "n1#1", **more: Any) -> Site:
        made.append(Site(tmp_path / node.partition("#")[0], node, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()
