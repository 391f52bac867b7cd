"""Brokers as processes of their own, and clients that do only what a test tells them."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.conformance.peer import Peer

Run = Callable[..., Rumqd]
Dial = Callable[..., Peer]


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """A data directory that is not there yet, and is gone after the test: some of them are large."""
    folder = tmp_path / "data"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def run(data: Path) -> Iterator[Run]:
    """run(*flags, descriptors=0) -> Rumqd: a broker on the test's data directory that accepts clients."""
    started: list[Rumqd] = []

    def call(*flags: str, descriptors: int = 0) -> Rumqd:
        started.append(Rumqd(data, *flags, descriptors=descriptors))
        started[-1].start()
        return started[-1]

    yield call
    for broker in started:
        broker.end()


@pytest.fixture
def join() -> Iterator[Dial]:
    """join(broker, client_id, version=5, **fields of wire.connect) -> Peer: accepted by the broker."""
    peers: list[Peer] = []

    def call(broker: Rumqd, client_id: str, version: int = 5, **fields: object) -> Peer:
        peers.append(Peer(broker.address, version))
        answer = peers[-1].connect(client_id, **fields)
        assert answer.code == 0, answer
        return peers[-1]

    yield call
    for peer in peers:
        peer.close()
