"""A connected client authenticates again. MQTT 5.0, 4.12.1."""

from typing import Any

from rumq.mqtt import packets as p
from rumq.mqtt.reasons import Reason
from rumq.session.connection.packet_order import State
from tests.conformance.wire import Kind
from tests.session.broker import CHALLENGE, METHOD, WORK, Broker, Wire, by_method, connected

BY_METHOD: Any = {"authentication_method": METHOD}
AGAIN, ANSWER = p.Auth(Reason.RE_AUTHENTICATE, BY_METHOD), p.Auth(Reason.CONTINUE_AUTHENTICATION, BY_METHOD)


def behind_connack(*steps: Any) -> Wire:
    return connected(Broker(), policy=by_method((), steps), properties=BY_METHOD)


def test_it_succeeds_while_everything_else_goes_on() -> None:
    wire = behind_connack(CHALLENGE, WORK)
    wire.say(AGAIN, p.Pingreq())
    assert [each.kind for each in wire.hears()] == [Kind.AUTH, Kind.PINGRESP]
    wire.say(ANSWER, p.Publish("t", b"x", 1, False, False, 1))
    assert wire.link.state is State.REVERIFYING and [each.kind for each in wire.hears()] == [Kind.PUBACK]
    wire.broker.checks[0](True, None)
    assert [(each.kind, each.code) for each in wire.hears()] == [(Kind.AUTH, Reason.SUCCESS)]
    assert wire.link.state is State.CONNECTED_BY_METHOD and wire.broker.told("client.proved")


def test_what_cannot_be_checked_ends_the_connection() -> None:
    wire = behind_connack(WORK)
    wire.say(AGAIN)
    wire.broker.checks[0](None, OSError())
    assert wire.closed and [each.code for each in wire.hears()] == [Reason.NOT_AUTHORIZED]


def test_another_method_is_a_protocol_error() -> None:
    wire = behind_connack()
    wire.say(p.Auth(Reason.RE_AUTHENTICATE, {"authentication_method": "OTHER"}))
    assert wire.closed and [each.code for each in wire.hears()] == [Reason.PROTOCOL_ERROR]
