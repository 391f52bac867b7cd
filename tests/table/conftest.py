"""A log to read. Without pyarrow all tests here are skipped."""

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

from tests.spark.logs import write_example


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 messages of three topics in segments of a few chunks, some of MQTT 5."""
    root = str(tmp_path_factory.mktemp("log") / "data")
    write_example(root)
    return root
