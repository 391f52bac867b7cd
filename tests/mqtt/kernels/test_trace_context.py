"""The kernel of trace contexts: which rows of a batch are traced, and frames with another traceparent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.row_layout import ROW
from rumq.mqtt.decode import decode
from rumq.mqtt.encode import encode
from rumq.mqtt.frames import frame_at
from rumq.mqtt.kernels.batch import Batch
from rumq.mqtt.kernels.ingest import cut
from rumq.mqtt.kernels.trace_context import Sampler, contexts, move_frames, patched, stamped
from rumq.mqtt.kernels.wire_state import Wire
from rumq.mqtt.packets import Publish

VALUE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = b"00-ffffffffffffffffffffffffffffffff-b7ad6b7169203331-01"


def frame(value: str | None = None, *, qos: int = 0, version: int = 5, payload: bytes = b"x", **more: object) -> bytes:
    pairs = [("a", "b"), *([("traceparent", value)] if value is not None else []), ("tracestate", "c=d")]
    properties = {"user_properties": pairs, **more} if version == 5 and (value is not None or more) else {}
    return encode(Publish("t", payload, qos=qos, packet_id=7 if qos else None, properties=properties), version)  # type: ignore[arg-type]


def batch(*frames: bytes, version: int = 5) -> tuple[bytearray, bytes, int, int]:
    made, wire = Batch(), Wire(version == 5, 1 << 20, 65535, 0)
    wire.publishers = [1]
    data = bytearray(b"".join(frames))
    assert cut(wire, [made], data, 0, len(data), {b"t": 0}) == len(data)
    return made.take()[:4]


def sampler(every: int, budget: int = 100) -> Sampler:
    made = Sampler(every, budget)
    made.left = every
    return made


def text(value: bytes) -> str:
    return value.decode()


@pytest.mark.parametrize(
    ("value", "is_carried"),
    [
        (text(VALUE), True), (text(VALUE[:-2]) + "03", True), (text(VALUE[:-2]) + "0b", True),
        (text(VALUE[:-2]) + "00", False), (text(VALUE[:-2]) + "0a", False), ("01", False), ("", False),
        (text(VALUE) + "-later", True), (None, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("qos", [0, 1])
def test_rows_whose_context_is_sampled_are_found(value: str | None, is_carried: bool, qos: int) -> None:
    rows, frames, count, flags = batch(frame(qos=qos), frame(value, qos=qos, content_type="text"), frame(qos=qos))
    made = sampler(1 << 30)
    assert made.wants(rows, frames, count, flags, 0.0) is is_carried
    assert made.carried == ([1] if is_carried else [])


def test_a_batch_before_mqtt_5_is_only_counted() -> None:
    rows, frames, count, flags = batch(*[frame(version=4)] * 3, version=4)
    made = sampler(7)
    assert [made.wants(rows, frames, count, flags, 0.0) for _ in range(3)] == [False, False, True]
    assert count - 1 + made.left == 0  # the seventh message is the first row of the third batch


def test_the_budget_is_that_of_a_second() -> None:
    rows, frames, count, flags = batch(*[frame(text(VALUE))] * 5)
    made = sampler(1 << 30, 3)
    assert made.wants(rows, frames, count, flags, 0.0) and made.carried == [0, 1, 2] and made.over == 2
    made.budget -= 3
    assert not made.wants(rows, frames, count, flags, 0.9) and made.over == 7
    assert made.wants(rows, frames, count, flags, 1.0) and made.over == 9


def parsed(data: bytes, version: int = 5) -> Publish:
    found = frame_at(bytearray(data), 0, len(data))
    assert found is not None and found[0] + found[1] == len(data)
    packet = decode(data[0], data[found[0] :], version)
    assert isinstance(packet, Publish)
    return packet


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("version", [4, 5])
@given(st.binary(max_size=300), st.text("abc", max_size=200), st.none() | st.text("0a-", max_size=70))
def test_a_stamped_frame_says_the_same_with_another_context(
    qos: int, version: int, payload: bytes, filler: str, value: str | None
) -> None:
    """Also where the property length or the remaining length takes one more byte."""
    given = frame(value, qos=qos, version=version, payload=payload, **({"content_type": filler} if filler else {}))
    made, payload_at = stamped(given, qos, version == 5, VALUE)
    before, after = parsed(given, version), parsed(made)
    assert made[payload_at:] == payload == after.payload
    assert (after.topic, after.qos, after.packet_id) == (before.topic, before.qos, before.packet_id)
    assert contexts(made, qos)[0] == VALUE
    pairs = [pair for pair in after.properties.get("user_properties", ()) if pair[0] != "traceparent"]
    assert pairs == [p for p in before.properties.get("user_properties", ()) if p[0] != "traceparent"]
    assert after.properties.get("content_type") == before.properties.get("content_type")
    assert patched(b"\xd0\x00" + made, 2, qos, OTHER) == b"\xd0\x00" + stamped(made, qos, True, OTHER)[0]


def test_several_contexts_of_a_message_are_none_and_states_are_one_list() -> None:
    twice = [("traceparent", text(VALUE))] * 2 + [("tracestate", "a=1"), ("tracestate", "b=2")]
    data = encode(Publish("t", b"x", properties={"user_properties": twice}), 5)
    assert contexts(data, 0) == (b"", b"a=1,b=2")
    rows, frames, count, flags = batch(data)
    assert not sampler(9).wants(rows, frames, count, flags, 0.0)
    assert contexts(frame(), 0) == (None, b"") and patched(frame("short"), 0, 0, VALUE) is None


def test_frames_behind_one_that_has_grown_are_found() -> None:
    rows, _, count, _ = batch(*[frame()] * 4)
    before = [ROW.unpack_from(rows, at * 32)[1] for at in range(count)]
    move_frames(rows, count, [(0, 71), (2, -1)])
    after = [ROW.unpack_from(rows, at * 32)[1] for at in range(count)]
    assert [b - a for a, b in zip(before, after, strict=True)] == [0, 71, 71, 70]
