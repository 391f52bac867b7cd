"""Under which conditions a client comes in, and what CONNACK says. MQTT 5.0, 3.1 and 3.2."""

from typing import Any

import pytest

from rumq.mqtt import packets as p
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from rumq.session.flow_control.limits import Limits
from rumq.session.flow_control.listener_policy import ListenerPolicy
from tests.conformance.wire import Kind, Prop
from tests.session.broker import Broker, Wire, connect, connected

LASTING: Any = {"session_expiry_interval": 3600}


def answer(broker: Broker, packet: p.Connect, policy: ListenerPolicy | None = None) -> Any:
    wire = Wire(broker, policy, packet.version)
    wire.say(packet)
    [connack] = wire.hears()
    return connack


@pytest.mark.parametrize(
    ("packet", "code"),
    [
        (connect("c" * 2000), Reason.CLIENT_IDENTIFIER_NOT_VALID),
        (connect(will=p.Will("w", b"", 2, False)), Reason.QOS_NOT_SUPPORTED),
        (connect(will=p.Will("w", b"", 1, True)), Reason.RETAIN_NOT_SUPPORTED),
        (connect(will=p.Will("w", b"", 1, False)), Reason.SUCCESS),
    ],
)
def test_what_cannot_be_served_is_refused(packet: p.Connect, code: int) -> None:
    """MQTT-3.2.2-12, MQTT-3.2.2-13."""
    assert answer(Broker(Limits(maximum_qos=1, retain_available=False)), packet).code == code


def test_a_full_listener_refuses_those_who_are_not_connected_yet() -> None:
    broker = Broker()
    connected(broker)
    broker.is_full = True
    assert answer(broker, connect("other")).code == Reason.QUOTA_EXCEEDED
    assert answer(broker, connect("c")).code == Reason.SUCCESS


def test_a_session_is_taken_over_by_the_next_connection() -> None:
    """MQTT-3.1.4-3."""
    broker = Broker()
    first = connected(broker, properties=LASTING)
    connack = answer(broker, connect(clean_start=False, properties=LASTING))
    assert connack.session_present
    assert first.closed and [(each.kind, each.code) for each in first.hears()] == [
        (Kind.DISCONNECT, Reason.SESSION_TAKEN_OVER)
    ]


def test_connack_names_durabilities_to_those_who_ask_and_nobody_else() -> None:
    """There are clients that cannot parse user properties of a CONNACK: they never said any themselves."""
    limits = Limits(durability=(("logs", "process"), ("main", "disk")))
    asks = Properties(user_properties=[("rumq-durability", "tell")])
    told = answer(Broker(limits), connect(properties=asks)).properties
    assert [value for prop, value in told if prop == Prop.USER_PROPERTY] == [
        ("rumq-durability/logs", "process"),
        ("rumq-durability", "disk"),
    ]
    for properties in (Properties(), Properties(user_properties=[("rumq", "durability")])):
        told = answer(Broker(limits), connect(properties=properties)).properties
        assert all(prop != Prop.USER_PROPERTY for prop, _ in told)


def test_connack_says_which_broker_this_is_to_those_who_ask_and_nobody_else() -> None:
    """A bridge asks: so that no message comes back to where it has been."""
    broker = Broker(Limits(broker_id="0123"))
    asks = Properties(user_properties=[("rumq-broker", "")])
    told = answer(broker, connect(properties=asks)).properties
    assert [value for prop, value in told if prop == Prop.USER_PROPERTY] == [("rumq-broker", "0123")]
    told = answer(broker, connect("other", properties=Properties())).properties
    assert all(prop != Prop.USER_PROPERTY for prop, _ in told)


@pytest.mark.parametrize(("maximum_qos", "told"), [(2, [("rumq-exactly-once", "yes")]), (1, [])])
def test_connack_says_that_qos_1_is_carried_as_qos_2_to_those_who_ask(maximum_qos: int, told: list[Any]) -> None:
    """And only where there is a QoS 2: a bridge relies on the answer."""
    asks = Properties(user_properties=[("rumq-exactly-once", "")])
    found = answer(Broker(Limits(maximum_qos=maximum_qos)), connect(properties=asks)).properties
    assert [value for prop, value in found if prop == Prop.USER_PROPERTY] == told
    found = answer(Broker(), connect(properties=Properties(user_properties=[("rumq-broker", "")]))).properties
    assert all(prop != Prop.USER_PROPERTY for prop, _ in found)


def test_connack_says_what_differs_from_the_standard() -> None:
    broker = Broker(Limits(maximum_qos=1, keep_alive_seconds_max=30, session_expiry_seconds_max=60))
    told = dict(answer(broker, connect("", properties=LASTING)).properties)
    assert told[Prop.MAXIMUM_QOS] == 1 and told[Prop.SERVER_KEEP_ALIVE] == 30
    assert told[Prop.SESSION_EXPIRY] == 60 and told[Prop.ASSIGNED_CLIENT_ID] == "rumq-1"


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize("accepted", [{4, 5}, {5}, {3, 4, 5}, {3}])
def test_versions_that_a_listener_does_not_accept_are_refused(version: int, accepted: set[int]) -> None:
    """MQTT-3.1.2-2: CONNACK may say which is the matter; MQTT 3 has 1 for it, MQTT 5 0x84."""
    broker = Broker()
    code = answer(broker, connect(version=version), ListenerPolicy(versions=frozenset(accepted))).code
    refused = Reason.UNSUPPORTED_PROTOCOL_VERSION if version == 5 else 1
    assert code == (0 if version in accepted else refused)


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(("bound", "code"), [(30, 2), (59, 2), (60, 0), (65_535, 0)])
def test_a_keep_alive_that_is_too_long_is_refused_where_the_client_cannot_be_told(
    version: int, bound: int, code: int
) -> None:
    broker = Broker(Limits(keep_alive_seconds_max=bound, keep_alive_refused=True))
    assert answer(broker, connect(version=version)).code == code
    assert answer(Broker(Limits(keep_alive_seconds_max=bound)), connect(version=version)).code == 0
    assert answer(broker, connect()).code == Reason.SUCCESS


@pytest.mark.parametrize("version", [4, 5])
def test_a_will_gives_no_orders_to_brokers(version: int) -> None:
    """mosquitto 2.1 refuses it as well: it would be carried out when nobody is there to be asked."""
    for topic, is_taken in (("$CONTROL/dynamic-security/v1", False), ("$CONTROLS", True), ("a/$CONTROL/x", True)):
        code = answer(Broker(), connect(version=version, will=p.Will(topic, b"", 0, False))).code
        assert (code == 0) == is_taken
        assert is_taken or code == (Reason.NOT_AUTHORIZED if version == 5 else 5)


@pytest.mark.parametrize(("version", "flags"), [(3, 0), (4, 1)])
def test_before_mqtt_5_connack_says_that_a_session_was_there_where_there_is_a_word_for_it(
    version: int, flags: int
) -> None:
    """MQTT 3.1.1, 3.2.2.2; in 3.1 the byte is reserved."""
    broker, sent = Broker(), []
    for _ in range(2):
        wire = Wire(broker, version=version)
        wire.say(connect(version=version, clean_start=False))
        sent.append(bytes(wire._bytes))
    assert sent == [b"\x20\x02\x00\x00", bytes([0x20, 2, flags, 0])]
