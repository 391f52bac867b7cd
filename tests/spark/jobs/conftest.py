"""A log of real temperatures for all tests of jobs."""

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
pytest.importorskip("vega_datasets", reason="vega_datasets is not installed (pip install 'rumq[examples]')")

from tests.spark.jobs.logs import Reading, weather, weather_message, write_log


@pytest.fixture(scope="session")
def readings() -> list[Reading]:
    return weather()


@pytest.fixture(scope="session")
def weather_log(tmp_path_factory: pytest.TempPathFactory, readings: list[Reading]) -> str:
    """17,518 readings, city after city."""
    root = str(tmp_path_factory.mktemp("weather") / "data")
    write_log(root, [weather_message(one) for one in readings])
    return root
