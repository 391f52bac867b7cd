"""A topic with a type makes messages of values, and values of messages."""

import msgspec
import pytest

from rumq.client import Message, Properties
from rumq.typed import PayloadMismatch, Topic


class Temperature(msgspec.Struct):
    celsius: float


TEMPERATURES = Topic("plant/{pump}/temperature", Temperature)


def message(payload: bytes, **properties: object) -> Message:
    given = Properties(user_properties=[("rumq-offset", "7")], **properties)  # type: ignore[typeddict-item]
    return Message("plant/3/temperature", payload, 1, False, False, given)


def test_a_value_becomes_a_message_that_says_how_it_is_encoded() -> None:
    out = TEMPERATURES.outgoing(Temperature(21.5), qos=1, retain=True, pump=7)
    assert (out.topic, out.payload, out.qos, out.retain) == ("plant/7/temperature", b'{"celsius":21.5}', 1, True)
    assert out.properties == {"content_type": "application/json", "payload_format_indicator": 1}
    packed = Topic("a", Temperature, encoding="msgpack").outgoing(Temperature(21.5))
    assert packed.properties == {"content_type": "application/msgpack"}, "its bytes are no UTF-8"


def test_a_message_becomes_a_value() -> None:
    assert TEMPERATURES.value_of(message(b'{"celsius": 3}')) == Temperature(3.0)
    packed = msgspec.msgpack.encode(Temperature(3.0))
    assert TEMPERATURES.value_of(message(packed, content_type="application/msgpack")) == Temperature(3.0)


@pytest.mark.parametrize(
    ("payload", "content_type", "words"),
    [
        (b'{"celsius": "warm"}', "application/json", r"Expected `float`, got `str` - at `\$.celsius`"),
        (b"21.5", "", "Expected `object`, got `float`"),
        (b"", "", "truncated"),
        (b"{}", "image/png", "image/png"),
        (b"{}", "", "missing required field `celsius`"),
    ],
)
def test_what_does_not_fit_is_named_with_topic_and_offset(payload: bytes, content_type: str, words: str) -> None:
    with pytest.raises(PayloadMismatch, match=words) as raised:
        TEMPERATURES.value_of(message(payload, content_type=content_type))
    assert (raised.value.topic, raised.value.offset) == ("plant/3/temperature", 7)
