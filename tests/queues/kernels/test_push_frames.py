"""What the kernel makes of messages is what the encoder makes of them; what may be wrong it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.packets import Puback, Publish
from rumq.mqtt.reasons import Reason
from rumq.queues.link.push_link import encoded_topic
from rumq.queues.rules.messages import Push
from rumq.queues.rules.packets import properties_of
from tests.kernel_forms import forms

TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=20)
KERNEL = pytest.mark.parametrize("kernel", forms("rumq.queues.kernels.push_frames"))
TOPICS: dict[str | None, str] = {None: "$queues/q/__none__", "a/é": "$queues/q/a/é"}
ENCODED = {topic: encoded_topic(name) for topic, name in TOPICS.items()}
TTL, PACKET_MAX = 600, 100_000

PUSHES = st.builds(
    Push, payload=st.binary(max_size=300), topic=st.sampled_from(list(TOPICS)), key=st.none() | TEXT,
    content_type=TEXT, expiry_seconds=st.none() | st.integers(1, 1000),
)  # fmt: skip


def packets(data: bytes) -> list[Publish]:
    found, at = [], 0
    while at < len(data):
        head = frame_at(data, at, len(data), version=5)
        assert head is not None
        stop = at + head[0] + head[1]
        packet = decode(data[at], data[at + head[0] : stop], 5)
        assert isinstance(packet, Publish)
        found.append(packet)
        at = stop
    return found


def expected(push: Push, packet_id: int) -> Publish:
    expiry = TTL if push.expiry_seconds is None else min(TTL, push.expiry_seconds)
    return Publish(TOPICS[push.topic], push.payload, 1, packet_id=packet_id, properties=properties_of(push, expiry))


@KERNEL
@given(pushes=st.lists(PUSHES, max_size=8), first_id=st.sampled_from([1, 65_533]), data=st.data())
def test_packets_are_those_of_the_encoder_in_whatever_parts_they_go(
    kernel: Any, pushes: list[Push], first_id: int, data: st.DataObject
) -> None:
    frames = kernel.PushFrames()
    assert frames.take(pushes, 0, len(pushes), ENCODED, TTL, PACKET_MAX) == len(pushes) == len(frames)
    sent, at = bytearray(), 0
    while at < len(pushes):
        count, size = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 800))
        stop = frames.stop_of(at, count, size)
        some = frames.numbered(at, stop, (first_id - 1 + at) % 65_535 + 1)
        assert at < stop <= at + count and (len(some) <= size or stop == at + 1)
        sent += some
        at = stop
    wanted = [expected(each, (first_id - 1 + number) % 65_535 + 1) for number, each in enumerate(pushes)]
    assert packets(bytes(sent)) == wanted


@KERNEL
@pytest.mark.parametrize(
    "other",
    [
        Push(payload=b"x", topic="not checked yet"),
        Push(payload=b"x", delay_seconds=0.1),
        Push(payload=b"x", expiry_seconds=0),
        Push(payload=b"x", expiry_seconds=1 << 40),
        Push(payload=b"x", headers=(("a", "b"),)),
        Push(payload=b"x", key="nul\0"),
        Push(payload=b"x", key="k" * 1025),
        Push(payload=b"x", key="\ud800"),
        Push(payload=b"x", content_type="nul\0"),
        Push(payload=b"x", content_type="t" * 65_536),
        Push(payload=b"x" * PACKET_MAX),
        Push(payload="text"),  # type: ignore[arg-type]
        Push(payload=b"x", expiry_seconds=True),
    ],
)
def test_what_may_be_wrong_or_waits_is_left_to_who_can_say_why(kernel: Any, other: Push) -> None:
    good = Push(payload=b"good")
    frames = kernel.PushFrames()
    assert frames.take([good, other, good], 0, 3, ENCODED, TTL, PACKET_MAX) == 1 == len(frames)
    assert frames.take([good, other, good], 2, 3, ENCODED, TTL, PACKET_MAX) == 3
    assert packets(bytes(frames.numbered(0, 2, 1))) == [expected(good, 1), expected(good, 2)]


@KERNEL
def test_frames_that_were_added_one_by_one_go_in_their_place(kernel: Any) -> None:
    frames = kernel.PushFrames()
    frames.take([Push(payload=b"1")], 0, 1, ENCODED, TTL, PACKET_MAX)
    frames.add(0x33, encoded_topic("t"), b"\0", b"payload" * 50)
    frames.take([Push(payload=b"3")], 0, 1, ENCODED, TTL, PACKET_MAX)
    found = packets(bytes(frames.numbered(0, 3, 65_535)))
    assert [(each.payload[:7], each.packet_id, each.retain) for each in found] == [
        (b"1", 65_535, False), (b"payload", 1, True), (b"3", 2, False),
    ]  # fmt: skip


@KERNEL
def test_an_endless_bound_stops_at_the_last_frame(kernel: Any) -> None:
    frames = kernel.PushFrames()
    frames.take([Push(payload=b"x")] * 3, 0, 2, ENCODED, TTL, PACKET_MAX)
    assert len(frames) == 2 and frames.stop_of(1, 1000, 1 << 20) == 2


@KERNEL
@given(st.integers(0, 70), st.sampled_from([1, 65_500]), st.integers(0, 100))
def test_short_pubacks_are_counted_up_to_what_is_none(kernel: Any, count: int, first_id: int, most: int) -> None:
    ids = [(first_id - 1 + each) % 65_535 + 1 for each in range(count)]
    data = kernel.pubacks(ids)
    assert data == b"".join(encode(Puback(each), 5) for each in ids)
    wanted = min(count, most)
    after = (first_id - 1 + count) % 65_535 + 1
    rests = [b"", b"\x40\x02\x00", encode(Puback(30_000), 5), encode(Puback(after, Reason.QUOTA_EXCEEDED), 5)]
    for rest in rests:
        assert kernel.short_pubacks(b"\0" + data + rest, 1, first_id, most) == wanted
