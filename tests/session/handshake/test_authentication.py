"""Between CONNECT and CONNACK: threads, challenges and refusals. MQTT 5.0, 4.12."""

from typing import Any

import pytest

from rumq.auth.errors import Busy
from rumq.mqtt import packets as p
from rumq.mqtt.reasons import Reason
from rumq.session.connection.packet_order import State
from tests.conformance.wire import Kind
from tests.session.broker import CHALLENGE, METHOD, WORK, Broker, Wire, by_method, connect

BY_METHOD = {"authentication_method": METHOD}


def begin(*steps: Any) -> Wire:
    wire = Wire(Broker(), by_method(steps))
    wire.say(connect(properties=BY_METHOD))
    return wire


def test_a_client_is_not_read_while_a_thread_checks_it() -> None:
    wire = begin(WORK)
    assert wire.paused and wire.link.state is State.VERIFYING
    wire.broker.checks[0](True, None)
    assert not wire.paused and [each.kind for each in wire.hears()] == [Kind.CONNACK]


def test_a_challenge_is_an_auth_packet_and_so_is_its_answer() -> None:
    wire = begin(CHALLENGE)
    [challenge] = wire.hears()
    assert (challenge.kind, challenge.code) == (Kind.AUTH, Reason.CONTINUE_AUTHENTICATION)
    wire.say(p.Auth(Reason.CONTINUE_AUTHENTICATION, BY_METHOD))  # type: ignore[arg-type]
    assert [each.kind for each in wire.hears()] == [Kind.CONNACK]
    assert wire.link.client.user == "ann"


def test_an_answer_by_another_method_is_refused() -> None:
    wire = begin(CHALLENGE)
    wire.hears()
    wire.say(p.Auth(Reason.CONTINUE_AUTHENTICATION, {"authentication_method": "OTHER"}))
    assert wire.closed and [each.code for each in wire.hears()] == [Reason.PROTOCOL_ERROR]


@pytest.mark.parametrize(("fault", "code"), [(Busy(), Reason.SERVER_BUSY), (OSError(), Reason.SERVER_UNAVAILABLE)])
def test_what_cannot_be_checked_is_refused(fault: Exception, code: Reason) -> None:
    wire = begin(WORK)
    wire.broker.checks[0](None, fault)
    assert wire.closed and [each.code for each in wire.hears()] == [code]


def test_what_a_thread_finds_out_about_a_client_that_has_gone_is_dropped() -> None:
    wire = begin(WORK)
    wire.link.lost("gone")
    wire.broker.checks[0](True, None)
    assert not wire.hears()
