"""Batches of an answer: topics are decided once, bounds hold, and empty stretches are one batch."""

from pathlib import Path

from commitlog.read.cold_reads import clipped
from rumq.kafka.log.record_batches import SPAN_MAX, BatchWriter, TopicVerdicts
from tests.kafka.decoded import batches
from tests.kafka.kernels.test_record_batches import chunk_of
from tests.spark.logs import message


def test_a_topic_is_decided_once(tmp_path: Path) -> None:
    chunk = chunk_of(tmp_path / "data", [message(f"t/{n % 400}", b"") for n in range(1200)])
    asked: list[str] = []

    def wants(topic: str) -> bool:
        asked.append(topic)
        return topic.endswith("7")

    table = TopicVerdicts(wants)
    for _ in range(2):
        writer = BatchWriter(table, 0, clears=False)
        assert writer.add(chunk, 1 << 20) == 1200
        assert writer.records == 120
    assert len(set(asked)) == 400 and len(asked) <= 2 * 400  # those of rows that were asked about together, again


def test_an_answer_ends_at_its_bound_and_goes_on_there(tmp_path: Path) -> None:
    chunk = chunk_of(tmp_path / "data", [message("t", b"x" * 500)] * 50)
    at, sizes = 0, []
    while at < 50:
        writer = BatchWriter(None, at, clears=False)
        at = writer.add(clipped(chunk, at, 50), 3000)
        sizes.append(writer.size)
        assert writer.end == at
    assert max(sizes) <= 3000 and len(sizes) == 10


def test_a_record_larger_than_the_bound_comes_alone(tmp_path: Path) -> None:
    chunk = chunk_of(tmp_path / "data", [message("t", b"x" * 50_000)] * 3)
    writer = BatchWriter(None, 0, clears=False)
    assert writer.add(chunk, 100) == 1 and writer.records == 1


def test_a_stretch_without_records_is_one_batch_up_to_what_a_batch_can_span() -> None:
    writer = BatchWriter(None, 5, clears=False)
    writer.span(5)
    assert not writer.parts
    writer.span(5 + SPAN_MAX + 7)
    found = batches(b"".join(writer.parts))
    assert [(each.base, each.end, each.records) for each in found] == [
        (5, 5 + SPAN_MAX, []), (5 + SPAN_MAX, 12 + SPAN_MAX, []),
    ]  # fmt: skip
