"""A packet that no peer should get is not written: a ValueError, as it is our bug. MQTT 5.0, 3."""

import pickle
from typing import Any, cast

import pytest

from rumq.mqtt.encode import encode
from rumq.mqtt.packets import (
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Puback,
    Publish,
    Pubrel,
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
    Will,
)
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason
from tests.mqtt.packets_table import VALID, Row


def having(**properties: Any) -> Properties:
    return cast(Properties, properties)


def publish(**properties: Any) -> Publish:
    return Publish("a", b"", properties=having(**properties))


REFUSED: list[tuple[str, int, Packet]] = [
    ("connect of another version", 4, Connect("p", 5)),
    ("connect of version 6", 6, Connect("p", 6)),
    ("connect 3.1 without an id", 3, Connect("", 3)),
    ("connect 3.1.1 to go on without an id", 4, Connect("", 4, False)),
    ("connect 3.1.1 with a password alone", 4, Connect("p", 4, password=b"x")),
    ("connect with a keep alive beyond two bytes", 5, Connect("p", keep_alive=65536)),
    ("connect with a negative keep alive", 5, Connect("p", keep_alive=-1)),
    ("connect with U+0000 in its id", 5, Connect("p\0")),
    ("connect with half a surrogate pair in its id", 5, Connect("\ud800")),
    ("connect with a password beyond 65,535 bytes", 5, Connect("p", password=bytes(65536))),
    ("connect with a will to a wildcard", 5, Connect("p", will=Will("a/#", b""))),
    ("connect with a will to no topic", 5, Connect("p", will=Will("", b""))),
    ("connect with a will of QoS 3", 5, Connect("p", will=Will("a", b"", 3))),
    ("connect with a will's property", 5, Connect("p", properties=having(will_delay_interval=1))),
    ("connect with its own property in the will", 5, Connect("p", will=Will("a", b"",
        properties=having(receive_maximum=1)))),
    ("connect with authentication data alone", 5, Connect("p", properties=having(authentication_data=b""))),
    ("connack 3.1.1 of a malformed CONNECT", 4, Connack(False, Reason.MALFORMED_PACKET)),
    ("connack that refuses and has a session", 5, Connack(True, Reason.BANNED)),
    ("connack with a reason of SUBACK", 5, Connack(False, Reason.GRANTED_QOS_1)),
    ("connack with maximum QoS 2", 5, Connack(properties=having(maximum_qos=2))),
    ("publish of QoS 3", 4, Publish("a", b"", 3, packet_id=1)),
    ("publish of QoS 1 without packet id", 4, Publish("a", b"", 1)),
    ("publish of QoS 0 with packet id", 4, Publish("a", b"", packet_id=1)),
    ("publish of QoS 0 with dup", 4, Publish("a", b"", dup=True)),
    ("publish with packet id 0", 4, Publish("a", b"", 1, packet_id=0)),
    ("publish with packet id 65,536", 4, Publish("a", b"", 1, packet_id=65536)),
    ("publish to a wildcard", 4, Publish("a/+", b"")),
    ("publish 3.1.1 to no topic", 4, Publish("", b"", properties=having(topic_alias=1))),
    ("publish 5 to no topic", 5, Publish("", b"")),
    ("publish beyond the largest remaining length", 4, Publish("a", bytes(268_435_453))),
    ("publish with an unknown property", 5, publish(retain_as_published=True)),
    ("publish with a property of another packet", 5, publish(reason_string="x")),
    ("publish with topic alias 0", 5, publish(topic_alias=0)),
    ("publish with topic alias 65,536", 5, publish(topic_alias=65536)),
    ("publish with payload format 2", 5, publish(payload_format_indicator=2)),
    ("publish with an expiry beyond four bytes", 5, publish(message_expiry_interval=2**32)),
    ("publish with a subscription identifier of five bytes", 5,
        publish(subscription_identifiers=[268_435_456])),
    ("publish with a wildcard in its response topic", 5, publish(response_topic="#")),
    ("puback with packet id 0", 4, Puback(0)),
    ("puback with a reason of another packet", 5, Puback(1, Reason.PACKET_IDENTIFIER_NOT_FOUND)),
    ("pubrel with a reason of another packet", 5, Pubrel(1, Reason.UNSPECIFIED_ERROR)),
    ("subscribe to nothing", 4, Subscribe(1, ())),
    ("subscribe of QoS 3", 4, Subscribe(1, (SubscriptionRequest("a", 3),))),
    ("subscribe with retain handling 3", 5, Subscribe(1, (SubscriptionRequest("a", retain_handling=3),))),
    ("subscribe shared and no local", 5, Subscribe(1, (SubscriptionRequest("$share/g/a", no_local=True),))),
    ("subscribe with two subscription identifiers", 5,
     Subscribe(1, (SubscriptionRequest("a"),), having(subscription_identifiers=[1, 2]))),
    ("suback of nothing", 5, Suback(1, ())),
    ("suback with a reason of another packet", 5, Suback(1, (Reason.NO_SUBSCRIPTION_EXISTED,))),
    ("unsubscribe from nothing", 4, Unsubscribe(1, ())),
    ("unsuback of nothing", 5, Unsuback(1)),
    ("unsuback with a reason of another packet", 5, Unsuback(1, (Reason.GRANTED_QOS_1,))),
    ("disconnect with a reason of CONNACK", 5, Disconnect(Reason.BAD_USER_NAME_OR_PASSWORD)),
    ("auth before 5", 4, Auth()),
    ("auth without a method", 5, Auth(Reason.CONTINUE_AUTHENTICATION)),
    ("auth with a reason of CONNACK", 5, Auth(Reason.NOT_AUTHORIZED, having(authentication_method="m"))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "packet"), REFUSED, ids=[name for name, _, _ in REFUSED])
def test_a_wrong_packet_of_ours_is_not_written(name: str, version: int, packet: Packet) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        encode(packet, version)


def test_a_version_leaves_out_what_it_has_no_place_for() -> None:
    said = having(reason_string="why")
    assert encode(Puback(1, Reason.NOT_AUTHORIZED, said), 4) == b"\x40\x02\x00\x01"
    assert encode(Unsuback(1, (Reason.NO_SUBSCRIPTION_EXISTED,), said), 4) == b"\xb0\x02\x00\x01"
    assert encode(Disconnect(Reason.SERVER_SHUTTING_DOWN, said), 4) == b"\xe0\x00"
    assert encode(Suback(1, (Reason.NOT_AUTHORIZED,), said), 3) == b"\x90\x03\x00\x01\x80"
    assert encode(Connack(True, Reason.SUCCESS, said), 3) == b"\x20\x02\x00\x00"
    assert encode(Connack(False, Reason.BANNED, said), 4) == b"\x20\x02\x00\x05"
    assert encode(publish(content_type="x"), 4) == b"\x30\x03\x00\x01a"
    shared = SubscriptionRequest("$share/g/a", 1, no_local=True, retain_as_published=True, retain_handling=3)
    assert encode(Subscribe(1, (shared,)), 4)[-1] == 1


@pytest.mark.parametrize("a", VALID, ids=lambda a: a.name)
def test_a_packet_goes_from_process_to_process_whole_and_is_never_changed(a: Row) -> None:
    assert pickle.loads(pickle.dumps(a.means)) == a.means
    with pytest.raises((AttributeError, TypeError)):
        a.means.packet_id = 7  # type: ignore[union-attr, misc]
