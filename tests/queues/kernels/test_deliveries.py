"""What the kernel makes of packets is what the decoder makes of them; what it does not know it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rumq.mqtt.encode import encode
from rumq.mqtt.kernels.delivery_properties import rfc3339
from rumq.mqtt.packets import Puback, Publish
from rumq.mqtt.properties import Properties
from rumq.queues.rules.messages import Push
from rumq.queues.rules.packets import delivered, expiry_of, properties_of
from tests.kernel_forms import forms

TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\0"), max_size=30)
FORMS = forms("rumq.queues.kernels.deliveries")


def packet(
    push: Push, offset: int, time_us: int, packet_id: int, *own: tuple[str, str], topic: str = "$queues/q/t"
) -> Publish:
    properties = properties_of(push, 60, *own)
    place = [("rumq-offset", str(offset)), ("rumq-lsn", "9"), ("rumq-partition", "queues/g1/p0")]
    place.append(("rumq-time", rfc3339(time_us).decode()))
    properties["user_properties"] = [*properties.get("user_properties", []), *place]
    return Publish(topic, push.payload, 1, packet_id=packet_id, properties=properties)


PACKETS = st.builds(
    packet,
    st.builds(
        Push, payload=st.binary(max_size=300), key=st.none() | TEXT, content_type=TEXT,
        headers=st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple),
    ),
    st.integers(0, 1 << 53), st.integers(0, 4_000_000_000_000_000), st.integers(1, 65_535),
    topic=st.sampled_from(["$queues/q/t", "$queues/q/a/b", "$queues/$dead/q/é"]),
)  # fmt: skip


@pytest.mark.parametrize("kernel", FORMS)
@given(packets=st.lists(PACKETS, max_size=5), cut_at=st.integers(0, 5000))
def test_it_agrees_with_the_decoder_however_packets_come_in_pieces(
    kernel: Any, packets: list[Publish], cut_at: int
) -> None:
    data = b"".join(encode(each, 5) for each in packets)
    out: list[Any] = []
    topics: dict[bytes, str] = {}
    pos = kernel.cut(data[:cut_at], 0, topics, out)
    assert pos <= min(cut_at, len(data))
    assert kernel.cut(data, pos, topics, out) == len(data)
    assert out == [(delivered(each), each.packet_id, expiry_of(each)) for each in packets]


@pytest.mark.parametrize("kernel", FORMS)
def test_a_dead_letter_has_its_origin(kernel: Any) -> None:
    given_packet = packet(
        Push(payload=b"x"), 4, 1, 7, ("rumq-origin", "q/5@t"), ("rumq-tries", "3"), ("rumq-other", "x")
    )
    out: list[Any] = []
    kernel.cut(encode(given_packet, 5), 0, {}, out)
    ((message, packet_id, _),) = out
    assert message == delivered(given_packet) and (message.origin, message.dead_tries, packet_id) == ("q/5@t", 3, 7)


@pytest.mark.parametrize("kernel", FORMS)
@pytest.mark.parametrize(
    "other",
    [
        encode(Puback(5), 5),
        encode(Publish("$queues/q/t", b"", 0), 5),
        encode(Publish("$queues/q/t", b"", 2, packet_id=1), 5),
        encode(Publish("$queues/q/t", b"without a place", 1, packet_id=1), 5),
        encode(Publish("$queues/q/t", b"", 1, packet_id=1, properties=Properties(response_topic="t")), 5),
        encode(
            Publish("$queues/q/t", b"", 1, packet_id=1, properties=Properties(user_properties=[("rumq-offset", "x")])),
            5,
        ),
    ],
)
def test_what_it_does_not_know_it_leaves_to_the_decoder(kernel: Any, other: bytes) -> None:
    first = encode(packet(Push(payload=b"x"), 4, 1, 7), 5)
    out: list[Any] = []
    assert kernel.cut(first + other + first, 0, {}, out) == len(first)
    assert len(out) == 1


@pytest.mark.parametrize("kernel", FORMS)
@given(data=st.binary(max_size=60))
@example(data=b"\0")
@example(data=b"\1\0")
def test_nonsense_is_left_alone(kernel: Any, data: bytes) -> None:
    out: list[Any] = []
    assert 0 <= kernel.cut(b"\x32" + data, 0, {}, out) <= len(data) + 1
