"""Rows of a chunk as a record batch: what is read back is what was published, compiled and not."""

from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from commitlog import Chunk, RealFiles
from commitlog.read.cold_reads import clipped
from commitlog.read.log_reader import LogReader
from rumq.mqtt.packets import Publish
from tests.commitlog.records import NOW
from tests.kafka.decoded import KafkaRecord, batches
from tests.kernel_forms import forms
from tests.spark.logs import Publisher, message, store_at

KERNELS = forms("rumq.kafka.kernels.record_batches")
ROOM = 1 << 18
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


def chunk_of(root: Path, given_: list[Publish]) -> Chunk:
    store = store_at(str(root), segment_bytes_max=1 << 24)
    Publisher(store.own[0]).chunk(given_)
    store.close()
    [view] = LogReader(RealFiles(), str(root)).partitions()
    [found] = list(view.chunks(0, view.end_lsn))
    assert isinstance(found, Chunk)
    return found


def expected(offset: int, given_: Publish) -> KafkaRecord:
    properties = given_.properties
    headers = [(name, value.encode()) for name, value in properties.get("user_properties", [])]
    names = {
        "content_type": "content-type", "response_topic": "mqtt-response-topic",
        "correlation_data": "mqtt-correlation-data", "message_expiry_interval": "mqtt-message-expiry",
        "payload_format_indicator": "mqtt-payload-format",
    }  # fmt: skip
    for key, name in names.items():
        value: Any = properties.get(key)
        if value is not None:
            headers.append((name, value if isinstance(value, bytes) else str(value).encode()))
    return KafkaRecord(offset, NOW // 1000, given_.topic.encode(), given_.payload, headers)


def same(found: KafkaRecord, wanted: KafkaRecord) -> bool:
    return found._replace(headers=[]) == wanted._replace(headers=[]) and sorted(found.headers) == sorted(wanted.headers)


def with_crc(kernel: Any, buffer: bytearray, stop: int) -> bytes:
    data = buffer[:stop]
    data[kernel.CRC_AT : kernel.CRC_FROM] = crc32c(bytes(data[kernel.CRC_FROM :])).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=40, deadline=None)
@given(given_=st.lists(messages(), min_size=1, max_size=8), data=st.data())
def test_what_is_read_back_is_what_was_published(
    kernel: Any, given_: list[Publish], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chunk = chunk_of(tmp_path_factory.mktemp("log") / "data", given_)
    first = data.draw(st.integers(0, len(given_) - 1))
    buffer = bytearray(ROOM)
    stop, records, next_row, need = kernel.put_batch(chunk, first, None, False, buffer, 0, ROOM)
    assert (records, next_row, need) == (len(given_) - first, len(given_), 0)
    [batch] = batches(with_crc(kernel, buffer, stop))
    assert (batch.base, batch.end) == (first, len(given_))
    for found, (offset, one) in zip(batch.records, list(enumerate(given_))[first:], strict=True):
        assert same(found, expected(offset, one)), (found, expected(offset, one))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_batch_spans_what_is_not_wanted(kernel: Any, tmp_path: Path) -> None:
    chunk = chunk_of(tmp_path / "data", [message(f"t/{n % 3}", b"%d" % n) for n in range(10)])
    table = bytearray(8)
    rows = kernel.undecided_rows(chunk.rows, table, 0)
    assert rows == list(range(10))  # the verdicts are the caller's
    words = memoryview(chunk.rows).cast("B").cast("I")
    for row in rows:
        topic = kernel.topic_at(chunk.frames, words[row * 8 + 1])
        table[words[row * 8]] = kernel.WANTED if topic == b"t/1" else kernel.UNWANTED
    assert kernel.undecided_rows(chunk.rows, table, 0) == []
    buffer = bytearray(ROOM)
    stop, records, next_row, _ = kernel.put_batch(chunk, 0, table, False, buffer, 0, ROOM)
    [batch] = batches(with_crc(kernel, buffer, stop))
    assert [each.offset for each in batch.records] == [1, 4, 7] and records == 3
    assert (batch.base, batch.end, next_row) == (0, 10, 10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_a_wanted_record_nothing_is_written(kernel: Any, tmp_path: Path) -> None:
    chunk = chunk_of(tmp_path / "data", [message("t", b"x")] * 3)
    buffer = bytearray(ROOM)
    assert kernel.put_batch(chunk, 1, bytearray([kernel.UNWANTED] * 8), False, buffer, 0, ROOM) == (0, 0, 3, 0)
    assert not any(buffer)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_batch_ends_at_its_bound_and_a_large_record_says_what_it_needs(kernel: Any, tmp_path: Path) -> None:
    chunk = chunk_of(tmp_path / "data", [message("t", b"x" * 1000)] * 10)
    buffer = bytearray(ROOM)
    stop, records, next_row, need = kernel.put_batch(chunk, 0, None, False, buffer, 0, 3000)
    assert stop <= 3000 and records == next_row == 2 and not need
    assert [each.end for each in batches(with_crc(kernel, buffer, stop))] == [2]
    _, records, next_row, need = kernel.put_batch(chunk, 4, None, False, bytearray(500), 0, 500)
    assert (records, next_row) == (0, 4) and 1000 < need < 1200
    buffer = bytearray(need)
    stop, records, next_row, need = kernel.put_batch(chunk, 4, None, False, buffer, 0, need)
    assert (records, next_row) == (1, 5) and stop <= len(buffer)
    batches(with_crc(kernel, buffer, stop))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_cleared_retained_message_is_null_only_where_that_is_asked_for(kernel: Any, tmp_path: Path) -> None:
    chunk = chunk_of(tmp_path / "data", [message("t", b"", retain=True), message("t", b""), message("t", b"x")])
    for clears, values in ((True, [None, b"", b"x"]), (False, [b"", b"", b"x"])):
        buffer = bytearray(ROOM)
        stop, *_ = kernel.put_batch(chunk, 0, None, clears, buffer, 0, ROOM)
        [batch] = batches(with_crc(kernel, buffer, stop))
        assert [each.value for each in batch.records] == values


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_part_of_a_chunk_keeps_its_offsets(kernel: Any, tmp_path: Path) -> None:
    chunk = clipped(chunk_of(tmp_path / "data", [message("t", b"%d" % n) for n in range(9)]), 3, 7)
    buffer = bytearray(ROOM)
    stop, *_ = kernel.put_batch(chunk, 0, None, False, buffer, 0, ROOM)
    [batch] = batches(with_crc(kernel, buffer, stop))
    assert [(each.offset, each.value) for each in batch.records] == [(n, b"%d" % n) for n in range(3, 7)]
