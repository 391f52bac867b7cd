"""Events of the supervisor and other processes reach a gateway, whenever it comes, and never wait for it."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rumq.events.event_ring import EventRing
from rumq.events.event_sender import NAME, EventSender


@pytest.fixture
def ring() -> EventRing:
    return EventRing(1)


@pytest.fixture
def sender(ring: EventRing, tmp_path: Path) -> EventSender:
    return EventSender(ring, str(tmp_path), "supervisor")


def told(ring: EventRing, name: str, text: str = "") -> None:
    ring.add(5, "info", name, json.dumps({"event": name, "level": "info", "why": text}).encode())


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[socket.socket]:
    with bound(tmp_path) as sock:
        yield sock


def bound(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    sock.bind(str(path / NAME))
    return sock


def names(sock: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            said = json.loads(sock.recv(1 << 18))
        except BlockingIOError:
            return found
        assert (said["source"], said["time_us"]) == ("supervisor", 5)
        found.append(said["line"]["event"])


def test_each_event_is_sent_once(ring: EventRing, gateway: socket.socket, sender: EventSender) -> None:
    assert not sender.flush() and names(gateway) == []
    told(ring, "a.first")
    told(ring, "a.second")
    assert not sender.flush() and names(gateway) == ["a.first", "a.second"]
    told(ring, "a.third")
    assert not sender.flush() and names(gateway) == ["a.third"]


def test_events_wait_for_a_gateway_that_is_not_there_yet(ring: EventRing, sender: EventSender, tmp_path: Path) -> None:
    told(ring, "a.first")
    assert sender.flush() and sender.flush()
    with bound(tmp_path) as gateway:
        assert not sender.flush() and names(gateway) == ["a.first"]


def test_a_gateway_that_was_started_again_gets_all(ring: EventRing, sender: EventSender, tmp_path: Path) -> None:
    told(ring, "a.first")
    with bound(tmp_path):
        sender.flush()
    (tmp_path / NAME).unlink()
    told(ring, "a.second")
    assert sender.flush()
    with bound(tmp_path) as again:
        assert not sender.flush() and names(again) == ["a.first", "a.second"]


def test_a_gateway_that_does_not_read_is_not_waited_for(
    ring: EventRing, gateway: socket.socket, sender: EventSender
) -> None:
    for number in range(1_000):
        told(ring, f"a.n{number}")
    got: list[str] = []
    assert sender.flush(), "it does not take them all at once"
    while sender.flush():
        got += names(gateway)
    got += names(gateway)
    assert got == [f"a.n{number}" for number in range(1_000)]


def test_an_event_that_fits_no_datagram_is_left_out(
    ring: EventRing, gateway: socket.socket, sender: EventSender
) -> None:
    told(ring, "a.large", "x" * 800_000)
    told(ring, "a.small")
    while sender.flush():
        pass
    assert names(gateway) == ["a.small"]
