"""Records of the log as protobuf: the kernel agrees with protobuf's own library, compiled and not."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog import Chunk, RealFiles
from commitlog.read.log_reader import LogReader
from rumq.mqtt.packets import Publish
from rumq.services.generated.broker_service_pb2 import Record, SubscribeResponse, UserProperty
from tests.commitlog.records import NOW
from tests.kernel_forms import forms
from tests.spark.logs import Publisher, message, store_at

NEVER = (1 << 63) - 1
KERNELS = forms("rumq.services.kernels.record_messages")
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=200)
topics = st.sampled_from(["a", "plant/7/temp", "t" * 200, "ä/ö"])


@st.composite
def messages(draw: st.DrawFn) -> Publish:
    properties: dict[str, Any] = {}
    if draw(st.booleans()):
        properties["content_type"] = draw(texts)
    if draw(st.booleans()):
        properties["response_topic"] = draw(topics)
    if draw(st.booleans()):
        properties["correlation_data"] = draw(st.binary(max_size=300))
    if draw(st.booleans()):
        properties["user_properties"] = draw(st.lists(st.tuples(texts, texts), max_size=5))
    if draw(st.booleans()):
        properties["message_expiry_interval"] = draw(st.integers(1, 2**32 - 1))
    if draw(st.booleans()):
        properties["payload_format_indicator"] = 1
    payload = draw(st.one_of(st.binary(max_size=300), st.just(b"x" * 20_000)))
    return message(draw(topics), payload, draw(st.integers(0, 1)), retain=draw(st.booleans()), **properties)


def chunks_of(root: Path, given_: list[Publish]) -> list[Chunk]:
    """The messages as a log has them."""
    store = store_at(str(root))
    Publisher(store.own[0]).chunk(given_)
    store.close()
    [view] = LogReader(RealFiles(), str(root)).partitions()
    found = list(view.chunks(0, view.end_lsn))
    assert all(isinstance(each, Chunk) for each in found)
    return found  # type: ignore[return-value]


def expected(chunk: Chunk, given_: list[Publish], now_us: int) -> list[Record]:
    offsets: dict[str, int] = {}
    found = []
    for number, each in enumerate(given_):
        offsets[each.topic] = offsets.get(each.topic, 0) + 1
        properties = each.properties
        record = Record(
            topic=each.topic, id=offsets[each.topic], payload=each.payload, time_us=chunk.base_ts,
            partition="main/g1/p0", lsn=number, retain=each.retain, publisher="device-7",
            content_type=properties.get("content_type", ""), response_topic=properties.get("response_topic", ""),
            correlation_data=properties.get("correlation_data", b""),
            user_properties=[UserProperty(name=n, value=v) for n, v in properties.get("user_properties", ())],
        )  # fmt: skip
        seconds = properties.get("message_expiry_interval")
        if seconds is not None:
            left_us = chunk.base_ts + seconds * 1_000_000 - now_us
            if left_us <= 0:
                continue
            record.expiry_seconds = -(-left_us // 1_000_000)
        found.append(record)
    return found


def all_of(
    kernel: Any, chunk: Chunk, wanted: dict[int, Any], now_us: int, room: int = 1 << 16, bytes_max: int = 1 << 20
) -> list[Record]:
    """As a subscription does: what has no room comes next, a larger buffer where one record needs it."""
    found, row, buffer = [], 0, bytearray(room)
    while row < chunk.count:
        size, count, following, need = kernel.put_records(
            chunk, row, wanted, b"main/g1/p0", {1: b"device-7"}, now_us, buffer, bytes_max
        )
        part = SubscribeResponse.FromString(bytes(buffer[:size])).records
        assert len(part) == count
        found += part
        if following == row and not count:
            assert need > len(buffer)
            buffer.extend(bytes(need - len(buffer)))
        row = following
    return found


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=60, deadline=None)
@given(st.lists(messages(), min_size=1, max_size=20), st.sampled_from([0, 5_000_000]), st.integers(100, 40_000))
def test_it_agrees_with_protobufs_library(
    kernel: Any, tmp_path_factory: pytest.TempPathFactory, given_: list[Publish], later_us: int, room: int
) -> None:
    for chunk in chunks_of(tmp_path_factory.mktemp("log") / "d", given_):
        wanted = dict.fromkeys(range(10), (0, NEVER))
        now_us = chunk.base_ts + later_us
        assert all_of(kernel, chunk, wanted, now_us, room, bytes_max=room) == expected(chunk, given_, now_us)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_not_wanted_is_left_out(kernel: Any, tmp_path: Path) -> None:
    """By lsn or by offset, either is enough; a topic that is not in the table is asked for."""
    [chunk] = chunks_of(tmp_path / "d", [message("ab"[n % 2], b"%d" % n) for n in range(10)])
    assert chunk.base_ts == NOW
    assert [each.lsn for each in all_of(kernel, chunk, {0: (4, NEVER), 1: None}, NOW)] == [4, 6, 8]
    assert [each.lsn for each in all_of(kernel, chunk, {0: (NEVER, 3), 1: None}, NOW)] == [6, 8]
    assert [each.lsn for each in all_of(kernel, chunk, {0: (8, 2), 1: (9, NEVER)}, NOW)] == [4, 6, 8, 9]
    size, count, row, need = kernel.put_records(chunk, 0, {0: (0, 0)}, b"p", {}, NOW, bytearray(1_000), 1_000)
    assert (count, row, need) == (1, 1, 0) and size
    assert kernel.topic_at(chunk.frames, 0) == b"a"


@pytest.mark.parametrize("kernel", KERNELS)
def test_places_of_publishers(kernel: Any, tmp_path: Path) -> None:
    store = store_at(str(tmp_path / "d"))
    one, other = Publisher(store.own[0], "one"), Publisher(store.own[0], "other")
    one.chunk([message("a", b""), message("b", b"")])
    other.chunk([message("a", b"")])
    one.chunk([message("b", b"")])
    store.close()
    [view] = LogReader(RealFiles(), str(tmp_path / "d")).partitions()
    numbers = {name: number for number, name in view.publishers(0, 4).items()}
    found = [
        (chunk.base_lsn + row, topic, offset)
        for chunk in view.chunks(0, 4)
        if isinstance(chunk, Chunk)
        for row, topic, offset in kernel.places_of(chunk.rows, {numbers[b"one"]})
    ]
    assert found == [(0, 0, 0), (1, 1, 0), (3, 1, 1)]
    both = set(numbers.values())
    assert sum(len(kernel.places_of(c.rows, both)) for c in view.chunks(0, 4) if isinstance(c, Chunk)) == 4
