"""What every conformance test is given: a broker, ways to reach it, and names nobody else uses.

RUMQ_TEST_BROKER=mosquitto takes the reference broker instead of rumqd; RUMQ_TEST_ADDRESS=host:port (and
RUMQ_TEST_WEBSOCKET=host:port) a broker that already runs."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.broker import accepts, running
from tests.conformance.departures import MOSQUITTO, SILENT_REFUSALS
from tests.conformance.peer import Address, Peer
from tests.conformance.wire import Text

Dial = Callable[..., Peer]
BROKER = os.environ.get("RUMQ_TEST_BROKER", "rumqd")
NUMBERS = itertools.count(1)
Peer.silent_refusals = BROKER in SILENT_REFUSALS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        name = item.nodeid.rpartition("conformance/")[2]
        reasons = [reason for start, reason in MOSQUITTO.items() if name.startswith(start)]
        if BROKER == "mosquitto" and reasons:
            item.add_marker(pytest.mark.xfail(reason=f"mosquitto departs: {reasons[0]}", run=False))


def address_of(variable: str) -> Address | None:
    host, _, port = os.environ.get(variable, "").rpartition(":")
    return (host, int(port)) if host else None


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Address, Address | None]]:
    """(MQTT, WebSocket) addresses of a broker that runs for the whole session."""
    if ready := address_of("RUMQ_TEST_ADDRESS"):
        yield ready, address_of("RUMQ_TEST_WEBSOCKET")
        return
    folder: Path = tmp_path_factory.mktemp("broker")
    with running(BROKER, folder) as found:
        yield found


@pytest.fixture(scope="session")
def broker(addresses: tuple[Address, Address | None]) -> Address:
    return addresses[0]


@pytest.fixture(scope="session")
def websocket(addresses: tuple[Address, Address | None]) -> Address:
    if addresses[1] is None or not accepts(addresses[1]):
        pytest.skip("this broker was given no WebSocket listener")
    return addresses[1]


@pytest.fixture(params=[4, 5], ids=["3.1.1", "5"])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=[0, 1, 2], ids=["qos0", "qos1", "qos2"])
def qos(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def name() -> str:
    """A client identifier of this test alone, within what every server must allow (MQTT-3.1.3-5)."""
    return f"c{os.getpid()}n{next(NUMBERS)}"


@pytest.fixture
def topic() -> str:
    """A topic of this test alone."""
    return f"conformance/{os.getpid()}/{next(NUMBERS)}"


@pytest.fixture
def dial(broker: Address) -> Iterator[Dial]:
    """dial(version=5) -> Peer: a connection on which nothing has been sent."""
    peers: list[Peer] = []

    def call(version: int = 5) -> Peer:
        peers.append(Peer(broker, version))
        return peers[-1]

    yield call
    for peer in peers:
        peer.close()


@pytest.fixture
def join(dial: Dial) -> Dial:
    """join(client_id, version=5, **fields of wire.connect) -> Peer: a connection that the broker accepted."""

    def call(client_id: Text = "", version: int = 5, **fields: Any) -> Peer:
        peer = dial(version)
        answer = peer.connect(client_id or f"j{os.getpid()}n{next(NUMBERS)}", **fields)
        assert answer.code == 0, answer
        return peer

    return call
