"""A log to read, and how to name it: its directory, or a Flight server of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[parquet]')")

from tests.spark.logs import write_example


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 messages of plant/0/temp to plant/2/temp in turn, in main/g1/p0."""
    root = str(tmp_path_factory.mktemp("records") / "data")
    write_example(root)
    return root


@pytest.fixture(params=["files", "flight"])
def place(request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """The source that names the log of a data directory."""
    if request.param == "files":
        yield lambda root: root
        return
    from tests.flight.served import served

    with ExitStack() as servers:
        addresses: dict[str, str] = {}

        def at(root: str) -> str:
            if root not in addresses:
                addresses[root] = servers.enter_context(served(root)).address
            return addresses[root]

        yield at
