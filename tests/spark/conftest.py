"""One Spark session for all tests here, and a log to read. Without Java or pyspark those that use it are skipped."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.spark.logs import write_example


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed (openjdk-17-jre-headless)")
    import rumq.spark

    session = rumq.spark.session(
        "tests",
        "local[2]",
        spark_ui_enabled="false",
        spark_log_level="ERROR",
        spark_driver_memory="1g",
        # Less compiling: a gate is over before it would pay.
        spark_driver_extraJavaOptions="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 messages of three topics in segments of a few chunks, some of MQTT 5."""
    root = str(tmp_path_factory.mktemp("log") / "data")
    write_example(root)
    return root


@pytest.fixture(params=["files", "flight"])
def place(request: pytest.FixtureRequest) -> Iterator[Callable[[str], dict[str, str]]]:
    """The options that name the log of a data directory: its path, or a Flight server of it."""
    if request.param == "files":
        yield lambda root: {"path": root}
        return
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")
    from tests.flight.served import served

    with ExitStack() as servers:
        addresses: dict[str, str] = {}

        def at(root: str) -> dict[str, str]:
            if root not in addresses:
                addresses[root] = servers.enter_context(served(root)).address
            return {"broker": addresses[root]}

        yield at
