"""Whatever clients do, they get of rumqd what they get of mosquitto: `python -m tests.mosquitto.random_sessions`."""

from collections.abc import Iterator

import pytest

from tests.conformance.peer import Address
from tests.mosquitto.mosquitto_process import why_not
from tests.mosquitto.random_sessions.brokers import both
from tests.mosquitto.random_sessions.play import Session

Brokers = tuple[Address, Address]


@pytest.fixture(scope="module", params=[1, 2])
def brokers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    if reason := why_not():
        pytest.skip(reason)
    with both(tmp_path_factory.mktemp("both"), request.param) as found:
        yield found


@pytest.mark.parametrize("seed", range(15))
def test_a_session_goes_the_same_way_at_both(brokers: Brokers, seed: int) -> None:
    found = Session(seed, brokers).play()
    assert found is None, f"rumqd is the first broker\n{found}"


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_thousands_do(brokers: Brokers) -> None:
    assert [str(found) for seed in range(1000, 3000) if (found := Session(seed, brokers).play()) is not None] == []
