"""No acknowledgement before its promise holds, and no message before an acknowledgement that must come first."""

import pytest

from rumq.mqtt import packets as p
from tests.conformance.wire import Kind
from tests.session.broker import Broker, Wire, connect, connected

LASTING = {"session_expiry_interval": 3600}
SUBSCRIBE = p.Subscribe(1, (p.SubscriptionRequest("t", 1),))


def kinds(wire: Wire) -> list[Kind]:
    return [packet.kind for packet in wire.hears()]


def test_a_puback_waits_for_the_log() -> None:
    """MQTT 5.0, 4.3.2."""
    broker = Broker()
    wire = connected(broker)
    broker.holds = True
    wire.say(p.Publish("t", b"x", 1, False, False, 1))
    assert kinds(wire) == []
    broker.commit()
    assert kinds(wire) == [Kind.PUBACK]


def test_a_suback_of_a_session_that_lasts_waits_for_the_journal_and_messages_wait_behind_it() -> None:
    broker = Broker()
    wire = connected(broker, properties=LASTING)
    broker.holds = True
    broker.refreshed.clear()
    wire.say(SUBSCRIBE)
    assert kinds(wire) == [] and wire.link.flow.waits
    broker.commit()
    assert kinds(wire) == [Kind.SUBACK] and not wire.link.flow.waits
    assert broker.refreshed == [wire.link]


def test_a_suback_of_any_other_session_waits_for_nothing() -> None:
    broker = Broker()
    wire = connected(broker)
    broker.holds = True
    wire.say(SUBSCRIBE)
    assert kinds(wire) == [Kind.SUBACK]


def test_deliveries_start_behind_a_connack_that_waits() -> None:
    broker = Broker()
    broker.holds = True
    wire = Wire(broker)
    wire.say(connect(properties=LASTING))
    assert wire.link.deliveries.connack_pending and kinds(wire) == []
    broker.commit()
    assert not wire.link.deliveries.connack_pending and kinds(wire) == [Kind.CONNACK]
    assert [type(command).__name__ for command in broker.commands] == ["Attach"]


@pytest.mark.parametrize("asked", [[], [("rumq-hold", "")]])
def test_a_disconnect_does_not_come_before_connack(asked: list[tuple[str, str]]) -> None:
    """MQTT-3.14.0-1. Of a client that asks to be sent no message, too."""
    broker = Broker()
    broker.holds = True
    wire = Wire(broker)
    wire.say(connect(properties=LASTING | {"user_properties": asked}))
    wire.say(connect())
    assert wire.closed and kinds(wire) == []


def test_what_waits_when_the_client_goes_is_not_sent() -> None:
    broker = Broker()
    wire = connected(broker)
    broker.holds = True
    wire.say(p.Publish("t", b"x", 1, False, False, 1))
    wire.link.lost("gone")
    broker.commit()
    assert kinds(wire) == []
