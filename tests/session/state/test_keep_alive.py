"""MQTT 5.0, 3.1.2.10 and 3.1.4: a silent client is disconnected. The time is an argument."""

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from rumq.mqtt.reasons import Reason
from rumq.session.state.keep_alive import KeepAliveMonitor


class Broker:
    def __init__(self) -> None:
        self.clock = SimpleNamespace(monotonic=0.0)
        self.events: list[tuple[str, Any]] = []
        self.crashes: list[Any] = []

    def event(self, name: str, client: Any, **fields: object) -> None:
        self.events.append((name, fields.get("why")))

    def crashed(self, connection: Any) -> None:
        self.crashes.append(connection)


class Connection:
    def __init__(self, keep_alive: float = 10.0, expires_at: float | None = None) -> None:
        self.due_at, self.due_place = inf, 0
        self.client = self
        self.closed = False
        self.session: object | None = object()
        self.version = 5
        self.transport = "its socket"
        self.heard_at, self.keep_alive, self.expires_at = 0.0, keep_alive, expires_at
        self.reasons: list[Reason] = []

    def dismiss(self, reason: Reason, why: str | None = None) -> None:
        self.reasons.append(reason)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def monitor() -> KeepAliveMonitor:
    return KeepAliveMonitor()


def at(seconds: float, monitor: KeepAliveMonitor, broker: Broker) -> None:
    broker.clock.monotonic = seconds
    monitor.check(broker)


def test_after_one_and_a_half_intervals_without_a_packet_the_connection_ends(
    monitor: KeepAliveMonitor, broker: Broker
) -> None:
    """MQTT-3.1.2-22."""
    link = Connection(keep_alive=10.0)
    monitor.add(link, 15.0)
    at(14.9, monitor, broker)
    assert not link.reasons
    at(15.0, monitor, broker)
    assert link.reasons == [Reason.KEEP_ALIVE_TIMEOUT]
    assert broker.events == [("client.lost", "keep alive ran out")]


def test_a_packet_meanwhile_gives_it_another_deadline(monitor: KeepAliveMonitor, broker: Broker) -> None:
    link = Connection(keep_alive=10.0)
    monitor.add(link, 15.0)
    link.heard_at = 9.0
    at(15.0, monitor, broker)
    at(23.9, monitor, broker)
    assert not link.reasons
    at(24.0, monitor, broker)
    assert link.reasons == [Reason.KEEP_ALIVE_TIMEOUT]


@pytest.mark.parametrize(("version", "why"), [(0, "no CONNECT in time"), (5, "not authenticated in time")])
def test_a_client_that_does_not_log_in_in_time_is_refused(
    monitor: KeepAliveMonitor, broker: Broker, version: int, why: str
) -> None:
    """MQTT 5.0, 3.1.4: CONNECT within a reasonable amount of time."""
    link = Connection()
    link.session, link.version = None, version
    monitor.add(link, 10.0)
    at(10.0, monitor, broker)
    assert link.reasons == [Reason.KEEP_ALIVE_TIMEOUT] and broker.events == [("client.refused", why)]


@pytest.mark.parametrize("keep_alive", [0.0, 40.0, 400.0])
def test_a_connection_ends_when_its_authentication_expires(
    monitor: KeepAliveMonitor, broker: Broker, keep_alive: float
) -> None:
    """As of a token with `exp`; keep alive 0: never silent for too long."""
    link = Connection(keep_alive=keep_alive, expires_at=100.0)
    monitor.add(link, 60.0)
    for seconds in (60.0, 99.9):
        link.heard_at = seconds - 1.0
        at(seconds, monitor, broker)
    assert not link.reasons
    at(100.0, monitor, broker)
    assert link.reasons == [Reason.NOT_AUTHORIZED]


def test_keep_alive_0_turns_it_off(monitor: KeepAliveMonitor, broker: Broker) -> None:
    """MQTT-3.1.2-22 does not apply: 3.1.2.10."""
    link = Connection(keep_alive=0.0)
    monitor.add(link, 10.0)
    at(1e6, monitor, broker)
    assert not link.reasons and not len(monitor)


def test_the_earlier_of_two_deadlines_counts(monitor: KeepAliveMonitor, broker: Broker) -> None:
    link = Connection(keep_alive=10.0)
    monitor.add(link, 15.0)
    monitor.add(link, 20.0)
    assert link.due_at == 15.0
    monitor.add(link, 5.0)
    assert link.due_at == 5.0 and len(monitor) == 1


def test_an_ended_connection_is_not_retained(monitor: KeepAliveMonitor, broker: Broker) -> None:
    link = Connection()
    monitor.add(link, 15.0)
    monitor.cancel(link)
    assert not len(monitor) and monitor._deadlines._ticks == {}
    at(15.0, monitor, broker)
    assert not link.reasons


def test_a_fault_while_one_is_closed_leaves_the_others_their_turn(monitor: KeepAliveMonitor, broker: Broker) -> None:
    class Faulty(Connection):
        def dismiss(self, reason: Reason, why: str | None = None) -> None:
            raise RuntimeError

    other = Connection()
    monitor.add(Faulty(), 15.0)
    monitor.add(other, 15.0)
    at(15.0, monitor, broker)
    assert other.reasons and broker.crashes == ["its socket"]
