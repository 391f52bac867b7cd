"""A log of real temperatures for all tests of jobs."""

import pytest

Reading = tuple[str, str, float]  # city, ISO time, degrees Celsius


@pytest.fixture(scope="session")
def readings() -> list[Reading]:
    from tests.spark.jobs.logs import weather

    return weather()


@pytest.fixture(scope="session")
def weather_log(tmp_path_factory: pytest.TempPathFactory, readings: list[Reading]) -> str:
    """17,518 readings, city after city."""
    from tests.spark.jobs.logs import weather_message, write_log

    root = str(tmp_path_factory.mktemp("weather") / "data")
    write_log(root, [weather_message(one) for one in readings])
    return root
