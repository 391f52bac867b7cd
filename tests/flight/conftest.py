"""A log to serve. Without pyarrow all tests here are skipped."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[flight]')")

from tests.spark.logs import write_example


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 messages of plant/0/temp to plant/2/temp in turn, in main/g1/p0."""
    made = str(tmp_path_factory.mktemp("flight") / "data")
    write_example(made)
    return made
