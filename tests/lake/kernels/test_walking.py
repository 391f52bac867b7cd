"""Digests and properties of the lake, compiled and as plain Python, against what they stand for."""

import random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.lake.kernels import walking
from rumq.mqtt.encode import encode
from rumq.mqtt.packets import Publish
from tests.kernel_forms import forms

np = pytest.importorskip("numpy", reason="numpy is not installed (pip install 'rumq[spark]')")
KERNEL = pytest.mark.parametrize("kernel", forms("rumq.lake.kernels.walking"))
RECORDS = st.dictionaries(st.integers(0, 2**62), st.binary(max_size=20), min_size=1, max_size=12)


def digest(kernel: ModuleType, records: list[tuple[int, bytes]]) -> int:
    values = [value for _, value in records]
    ends = np.cumsum([len(value) for value in values]).astype(np.int64)
    starts = ends - np.array([len(value) for value in values], np.int64)
    data = np.frombuffer(b"".join(values) or b"\0", np.uint8)
    return int(kernel.digest(np.array([lsn for lsn, _ in records], np.int64), starts, ends, data))


@KERNEL
@settings(max_examples=60, deadline=None)
@given(records=RECORDS, seed=st.integers(0, 99))
def test_a_digest_minds_every_bit_and_no_order(kernel: ModuleType, records: dict[int, bytes], seed: int) -> None:
    listed, chance = list(records.items()), random.Random(seed)
    whole = digest(kernel, listed)
    assert whole == digest(walking, listed), "both forms say the same"
    chance.shuffle(listed)
    assert digest(kernel, listed) == whole
    assert (digest(kernel, listed[:1]) + digest(kernel, listed[1:])) % 2**64 == whole, "they add up"
    assert digest(kernel, [*listed, listed[0]]) != whole
    at = chance.randrange(len(listed))
    lsn, value = listed[at]
    for other in ((lsn ^ 1, value), (lsn, value + b"\0"), (lsn, flipped(value, chance))):
        changed = [*listed[:at], other, *listed[at + 1 :]]
        assert (digest(kernel, changed) == whole) is (other == (lsn, value))


def flipped(value: bytes, chance: random.Random) -> bytes:
    if not value:
        return value
    at = chance.randrange(len(value))
    return value[:at] + bytes([value[at] ^ 1 << chance.randrange(8)]) + value[at + 1 :]


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "content_type": WORDS,
        "response_topic": st.sampled_from(["a", "b/c"]),
        "correlation_data": st.binary(max_size=5),
        "message_expiry_interval": st.integers(0, 2**32 - 1),
        "payload_format_indicator": st.integers(0, 1),
        "user_properties": st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=3),
    },
)


@KERNEL
@settings(max_examples=60, deadline=None)
@given(messages=st.lists(st.tuples(PROPERTIES, st.integers(0, 2), st.sampled_from([0, 200])), min_size=1, max_size=5))
def test_properties_are_found_where_they_stand(kernel: ModuleType, messages: list[Any]) -> None:
    frames, starts, payloads, flags = b"", [], [], []
    for properties, qos, size in messages:
        packet = Publish("t", b"p" * size, qos, packet_id=7 if qos else None, properties=properties)
        starts.append(len(frames))
        frames += encode(packet, 5)
        payloads.append(len(frames) - size)
        flags.append(qos | 16 | 32)
    count = len(messages)
    places, counts = np.empty(8 * count, np.int64), np.empty(count, np.int64)
    arrays = (
        np.array(starts, np.int64), np.array(payloads, np.int64), np.array(flags, np.uint16),
        np.frombuffer(frames, np.uint8), places, counts,
    )  # fmt: skip
    total = kernel.find_properties(*arrays, np.empty(0, np.int64))
    pairs = np.empty(4 * total, np.int64)
    assert kernel.find_properties(*arrays, pairs) == total == sum(counts)
    users = [(frames[a:b].decode(), frames[c:d].decode()) for a, b, c, d in pairs.reshape(-1, 4).tolist()]
    for number, (properties, _, _) in enumerate(messages):
        a, b, c, d, e, f, expiry, form = places.reshape(-1, 8)[number].tolist()
        assert (frames[a:b].decode() if a >= 0 else None) == properties.get("content_type")
        assert (frames[c:d].decode() if c >= 0 else None) == properties.get("response_topic")
        assert (frames[e:f] if e >= 0 else None) == properties.get("correlation_data")
        assert expiry == properties.get("message_expiry_interval", -1)
        assert form == properties.get("payload_format_indicator", -1)
        own, users = users[: counts[number]], users[counts[number] :]
        assert own == properties.get("user_properties", [])


@KERNEL
def test_a_frame_without_properties_has_none(kernel: ModuleType) -> None:
    frame = encode(Publish("t", b"x", 0), 4)
    places, counts = np.empty(8, np.int64), np.empty(1, np.int64)
    where = np.zeros(1, np.int64), np.array([len(frame) - 1]), np.zeros(1, np.uint16)
    assert kernel.find_properties(*where, np.frombuffer(frame, np.uint8), places, counts, np.empty(0, np.int64)) == 0
    assert places.tolist() == [-1] * 8 and counts.tolist() == [0]
