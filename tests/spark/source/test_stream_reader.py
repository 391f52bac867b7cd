"""Offsets of streaming queries, without Spark's engine: what each batch is, whatever happens between them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from commitlog import Store
from rumq.spark.source.schema import schema_of
from rumq.spark.source.stream_reader import RumqStreamReader
from rumq.table.errors import BadOption, DataLoss, OtherLog
from rumq.table.options import parse
from tests.commitlog.records import NOW, mark
from tests.spark.logs import Publisher, message, store_at

P0, P1 = "main/g1/p0", "main/g1/p1"
Stream = Callable[..., RumqStreamReader]


@pytest.fixture
def stream(place: Callable[[str], dict[str, str]]) -> Stream:
    """A reader of a data directory, from its files or from a Flight server."""

    def made(root: str, **given: str) -> RumqStreamReader:
        options = parse({**place(root), **given}, now_us=NOW, streaming=True)
        return RumqStreamReader(options, schema_of(options))

    return made


def publish(store: Store, number: int, count: int) -> None:
    """As an idle broker leaves it: a mark says that all is committed."""
    partition = store.own[number]
    Publisher(partition).chunk([message("a", b"x" * 20)] * count)
    mark(partition)


def at(**lsns: int) -> dict[str, Any]:
    return {"v": 1, "lsn": {f"main/g1/{name}": lsn for name, lsn in lsns.items()}}


def batches(reader: RumqStreamReader, limit: ReadLimit | None = None) -> list[dict[str, int]]:
    """The offsets of each batch until there is nothing more."""
    found = [reader.initialOffset()]
    while (following := reader.latestOffset(found[-1], limit or reader.getDefaultReadLimit())) != found[-1]:
        found.append(following)
    return [offsets["lsn"] for offsets in found]


def rows(reader: RumqStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[str, int]]:
    found = []
    for task in reader.partitions(start, end):
        for batch in reader.read(task):
            found += [(row["partition"], row["lsn"]) for row in batch.select(["partition", "lsn"]).to_pylist()]
    return found


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "d")


def test_a_batch_takes_what_its_limit_allows_in_proportion_to_the_lag(root: str, stream: Stream) -> None:
    store = store_at(root, partitions=2, segment_bytes_max=1 << 20)
    publish(store, 0, 30)
    publish(store, 1, 10)
    found = batches(stream(root, maxOffsetsPerTrigger="20"))
    assert found == [{P0: 0, P1: 0}, {P0: 15, P1: 5}, {P0: 30, P1: 10}]
    assert batches(stream(root), ReadAllAvailable())[1:] == [{P0: 30, P1: 10}]
    assert batches(stream(root, startingOffsets="latest")) == [{P0: 30, P1: 10}]
    store.close()


def test_a_batch_is_the_same_rows_when_it_is_read_again_later(root: str, stream: Stream) -> None:
    store = store_at(root, segment_bytes_max=2_000)
    reader = stream(root, minPartitions="3")
    publish(store, 0, 30)
    start, end = reader.initialOffset(), reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    before = rows(reader, start, end)
    assert before == [(P0, lsn) for lsn in range(30)]
    for _ in range(8):
        publish(store, 0, 30)
    store.close()
    assert rows(stream(root), start, end) == before


def test_what_no_mark_says_is_committed_is_not_read_yet(root: str, stream: Stream) -> None:
    store = store_at(root, holder="pid 1\n")
    reader = stream(root)
    Publisher(store.own[0]).chunk([message("a", b"")] * 5)
    assert batches(reader) == [{P0: 0}]
    publish(store, 0, 5)
    assert batches(reader) == [{P0: 0}, {P0: 10}]
    assert rows(reader, at(p0=0), at(p0=10)) == [(P0, lsn) for lsn in range(10)]
    store.close()


def test_who_published_is_known_in_every_batch_of_a_segment_that_grows(root: str, stream: Stream) -> None:
    """A publisher is named where it first comes, which an earlier batch may have read."""
    store = store_at(root, segment_bytes_max=1 << 20, holder="pid 1\n")
    reader, seen = stream(root), []
    offsets = reader.initialOffset()
    for name in ("a", "b", "a", "c", "b"):
        Publisher(store.own[0], name).chunk([message("t", b"")] * 3)
        mark(store.own[0])
        following = reader.latestOffset(offsets, ReadAllAvailable())
        for task in reader.partitions(offsets, following):
            seen += [who for batch in reader.read(task) for who in batch.column("client_id").to_pylist()]
        offsets = following
    assert "".join(seen) == "aaabbbaaacccbbb"
    store.close()


def test_a_partition_that_appears_is_read_from_its_first_record(root: str, stream: Stream) -> None:
    store = store_at(root, segment_bytes_max=1 << 20)
    publish(store, 0, 5)
    store.close()
    reader = stream(root)
    first = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    store = store_at(root, partitions=2, segment_bytes_max=1 << 20)
    publish(store, 1, 3)
    second = reader.latestOffset(first, ReadAllAvailable())
    assert (first["lsn"], second["lsn"]) == ({P0: 5}, {P0: 5, P1: 3})
    assert rows(reader, first, second) == [(P1, 0), (P1, 1), (P1, 2)]
    store.close()
    shutil.rmtree(f"{root}/main/g1/p1")
    store = store_at(root, segment_bytes_max=1 << 20)
    publish(store, 0, 2)
    store.close()
    assert reader.latestOffset(second, ReadAllAvailable())["lsn"] == {P0: 7, P1: 3}


def test_available_now_ends_at_what_was_there_when_it_began(root: str, stream: Stream) -> None:
    store = store_at(root, segment_bytes_max=1 << 20)
    publish(store, 0, 25)
    reader = stream(root, maxOffsetsPerTrigger="10", minOffsetsPerTrigger="1000")
    reader.prepareForTriggerAvailableNow()
    publish(store, 0, 25)
    assert batches(reader) == [{P0: 0}, {P0: 10}, {P0: 20}, {P0: 25}]
    store.close()


def test_a_batch_waits_for_the_least_that_was_asked_for(root: str, stream: Stream) -> None:
    store = store_at(root, segment_bytes_max=1 << 20)
    publish(store, 0, 5)
    reader = stream(root, minOffsetsPerTrigger="10", maxTriggerDelay="1d")
    assert batches(reader) == [{P0: 0}]
    publish(store, 0, 5)
    assert batches(reader) == [{P0: 0}, {P0: 10}]
    assert batches(stream(root, minOffsetsPerTrigger="99", maxTriggerDelay="0s")) == [{P0: 0}, {P0: 10}]
    store.close()


def test_a_bound_in_bytes_takes_whole_chunks_and_one_at_least(root: str, stream: Stream) -> None:
    store = store_at(root, segment_bytes_max=1 << 20)
    for _ in range(4):
        publish(store, 0, 10)
    store.close()
    ends = [offsets[P0] for offsets in batches(stream(root, maxBytesPerTrigger="1"))]
    assert ends == [0, 10, 20, 30, 40]
    size = Path(next(Path(f"{root}/main/g1/p0").glob("*.seg"))).stat().st_size
    assert [offsets[P0] for offsets in batches(stream(root, maxBytesPerTrigger=str(size)))] == [0, 40]


def test_a_log_that_is_shorter_than_the_checkpoint_says_ends_the_query(root: str, stream: Stream) -> None:
    store = store_at(root)
    publish(store, 0, 5)
    store.close()
    with pytest.raises(DataLoss, match=r"records 5 to 8 .*use a new checkpoint"):
        stream(root).latestOffset(at(p0=9), ReadAllAvailable())
    tolerant = stream(root, failOnDataLoss="false")
    assert tolerant.latestOffset(at(p0=9), ReadAllAvailable()) == at(p0=9)


def test_a_checkpoint_of_another_version_is_refused(root: str, stream: Stream) -> None:
    store_at(root).close()
    with pytest.raises(BadOption, match="offsets of version 1"):
        stream(root).latestOffset({"v": 2, "lsn": {}}, ReadAllAvailable())


def test_a_checkpoint_of_another_log_is_refused(root: str, stream: Stream, tmp_path: Path) -> None:
    """Also of one that is longer, as a directory that was removed and filled anew is."""
    store, other = (
        store_at(root, segment_bytes_max=1 << 20),
        store_at(str(tmp_path / "o"), segment_bytes_max=1 << 20),
    )
    publish(store, 0, 30)
    publish(other, 0, 50)
    store.close()
    other.close()
    reader = stream(root, maxOffsetsPerTrigger="20")
    begin = reader.initialOffset()
    middle = reader.latestOffset(begin, reader.getDefaultReadLimit())
    end = reader.latestOffset(middle, reader.getDefaultReadLimit())
    assert [offsets["lsn"] for offsets in (middle, end)] == [{P0: 20}, {P0: 30}]
    again = stream(root)
    assert rows(again, begin, middle) == [(P0, lsn) for lsn in range(20)], "a batch that is done again"
    assert again.latestOffset(end, again.getDefaultReadLimit()) == end
    elsewhere = stream(str(tmp_path / "o"))
    with pytest.raises(OtherLog, match=r"record 29 of main/g1/p0.*begin with a new checkpointLocation"):
        elsewhere.latestOffset(end, elsewhere.getDefaultReadLimit())
    with pytest.raises(OtherLog):
        stream(str(tmp_path / "o")).partitions(begin, middle)
    # What an earlier version wrote says nothing of it, and goes on.
    assert stream(str(tmp_path / "o")).latestOffset(at(p0=30), reader.getDefaultReadLimit())["lsn"] == {P0: 50}


def test_a_copy_of_a_log_is_the_same_log_up_to_its_end(root: str, stream: Stream, tmp_path: Path) -> None:
    store = store_at(root, segment_bytes_max=1 << 20)
    publish(store, 0, 30)
    shutil.copytree(root, tmp_path / "copy")
    publish(store, 0, 10)
    store.close()
    copied = store_at(str(tmp_path / "copy"), segment_bytes_max=1 << 20)
    publish(copied, 0, 20)
    copied.close()
    limit = stream(root).getDefaultReadLimit()
    first = stream(root, maxOffsetsPerTrigger="30")
    before = first.latestOffset(at(p0=0), first.getDefaultReadLimit())
    behind = stream(root).latestOffset(before, limit)
    assert (before["lsn"], behind["lsn"]) == ({P0: 30}, {P0: 40})
    copy = stream(str(tmp_path / "copy"))
    assert copy.latestOffset(before, limit)["lsn"] == {P0: 50}
    with pytest.raises(OtherLog):
        copy.latestOffset(behind, limit)
