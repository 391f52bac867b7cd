"""A stored message becomes the PUBLISH of a connection: as an encoder would have made it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.client import Outgoing
from rumq.client.outbox.outbox_log import StoredMessage, as_frame
from rumq.client.outbox.stored_packet import maybe_packet
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Publish
from rumq.mqtt.properties import Properties

SECOND = 1_000_000


def stored(message: Outgoing) -> StoredMessage:
    expires = "message_expiry_interval" in message.properties
    return StoredMessage(7, as_frame(message), message.retain, expires, 10 * SECOND)


@given(
    topic=st.text("aü/", min_size=1, max_size=200),
    payload=st.binary(max_size=300),
    retain=st.booleans(),
    qos=st.integers(1, 2),
    version=st.sampled_from([4, 5]),
    dup=st.booleans(),
    content_type=st.none() | st.text("xy", max_size=5),
)
def test_it_is_what_an_encoder_makes(
    topic: str, payload: bytes, retain: bool, qos: int, version: int, dup: bool, content_type: str | None
) -> None:
    properties = Properties() if content_type is None else Properties(content_type=content_type)
    packet = maybe_packet(stored(Outgoing(topic, payload, 0, retain, properties)), version, qos, 0)
    assert packet is not None
    sent = Publish(topic, payload, qos, retain, dup, 40_000, properties)
    assert bytes(packet.encoded(40_000, dup=dup)) == encode(sent, version)


@pytest.mark.parametrize(("waited", "left"), [(0, 5), (4.9, 1), (5, None), (100, None), (-3, 5)])
def test_what_is_left_of_its_expiry_goes_along(waited: float, left: int | None) -> None:
    """MQTT 5.0, 3.3.2.3.3, as a server does; a clock that was set back makes nothing last longer."""
    message = stored(Outgoing("a", b"", properties=Properties(message_expiry_interval=5)))
    packet = maybe_packet(message, 5, 2, round((10 + waited) * SECOND))
    if left is None:
        assert packet is None
    else:
        assert packet is not None
        expected = Publish("a", b"", 2, packet_id=1, properties=Properties(message_expiry_interval=left))
        assert bytes(packet.encoded(1, dup=False)) == encode(expected, 5)
