"""A message as a PUBLISH packet: as `rumq.mqtt.encode` writes it; what MQTT does not allow is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.mqtt.decode import decode
from rumq.mqtt.frames import FrameReader
from rumq.mqtt.packets import Publish
from rumq.services.contract.faults import CallFault
from rumq.services.generated.broker_service_pb2 import Message, UserProperty
from rumq.services.publishing.frames import outgoing

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=50)


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0+#"), min_size=1, max_size=300),
    st.binary(max_size=300), st.integers(0, 2**32 - 1), st.booleans(), texts, st.lists(st.tuples(texts, texts)),
    st.binary(max_size=100),
)  # fmt: skip
def test_it_is_what_mqtt_reads(
    topic: str, payload: bytes, expiry: int, retain: bool, kind: str, pairs: list[tuple[str, str]], correlation: bytes
) -> None:
    message = Message(
        topic=topic, payload=payload, expiry_seconds=expiry, retain=retain, content_type=kind,
        user_properties=[UserProperty(name=n, value=v) for n, v in pairs], correlation_data=correlation,
    )  # fmt: skip
    made = outgoing(message, 1 << 20)
    data = made.head + b"\x00\x07" + made.tail
    assert len(data) == made.size
    reader = FrameReader(version=5)
    reader.receive(data)
    [(first, body)] = reader.frames()
    found = decode(first, body, 5)
    assert isinstance(found, Publish)
    assert (found.topic, found.payload, found.qos, found.retain, found.packet_id) == (topic, payload, 1, retain, 7)
    wanted = {
        "message_expiry_interval": expiry, "content_type": kind, "user_properties": pairs,
        "correlation_data": correlation,
    }  # fmt: skip
    assert dict(found.properties) == {name: value for name, value in wanted.items() if value}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"topic": ""}, "TOPIC_INVALID"), ({"topic": "a/#"}, "TOPIC_INVALID"), ({"topic": "a+"}, "TOPIC_INVALID"),
     ({"topic": "a\0"}, "TOPIC_INVALID"), ({"topic": "x" * 65_536}, "TOPIC_INVALID"),
     ({"topic": "a", "response_topic": "b/#"}, "TOPIC_INVALID"),
     ({"topic": "a", "content_type": "x" * 65_536}, "ARGUMENT_INVALID"),
     ({"topic": "a", "user_properties": [UserProperty(name="\0")]}, "ARGUMENT_INVALID"),
     ({"topic": "a", "payload": b"x" * 1_000}, "MESSAGE_TOO_LARGE")],
)  # fmt: skip
def test_what_is_refused(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(CallFault) as fault:
        outgoing(Message(**fields), 1_000 if reason == "MESSAGE_TOO_LARGE" else 1 << 20)
    assert fault.value.reason == reason


def test_a_packet_of_the_largest_size_is_taken() -> None:
    size = outgoing(Message(topic="a", payload=b"x" * 100), 1 << 20).size
    assert outgoing(Message(topic="a", payload=b"x" * 100), size).size == size
    with pytest.raises(CallFault):
        outgoing(Message(topic="a", payload=b"x" * 100), size - 1)
