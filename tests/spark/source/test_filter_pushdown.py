"""Conditions that the source takes over choose the same rows as Spark would, and read less.

docs/guides/spark.md, "Read"."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)
from pyspark.sql.types import StructType

from commitlog.disk.files import RealFiles
from rumq.spark.source.data_source import RumqReader
from rumq.spark.source.filter_pushdown import push
from rumq.spark.source.schema import schema_of
from rumq.table import partition_ranges
from rumq.table.options import parse
from rumq.table.pushed_filters import LSN_END
from tests.commitlog.records import NOW, index, mark
from tests.flight.served import served
from tests.spark.histories import History
from tests.spark.logs import SECOND_US, Publisher, message, store_at

TOPIC, LSN, TS, PARTITION = ("topic",), ("lsn",), ("ts",), ("partition",)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def at(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


def test_what_is_taken_over_and_what_is_left() -> None:
    left = [
        LessThan(("qos",), 2), Not(EqualTo(LSN, 3)), In(LSN, [1, 2]), EqualTo(TS, datetime(2026, 1, 1)),
        EqualTo(("topic", "x"), "a"), EqualTo(TOPIC, None),
    ]  # fmt: skip
    pushed, found = push(
        [
            IsNotNull(TOPIC), StringStartsWith(TOPIC, "a/"), left[0], GreaterThan(LSN, 4), LessThanOrEqual(LSN, 9),
            left[1], GreaterThanOrEqual(TS, at(7)), LessThan(TS, at(9)), left[2], Not(StringContains(TOPIC, "b")),
            left[3], In(PARTITION, ["main/g1/p0"]), left[4], left[5],
        ]
    )  # fmt: skip
    assert found == left
    assert (pushed.first_lsn, pushed.end_lsn, pushed.times) == (5, 10, (7, 9))
    assert pushed.reads("main/g1/p0") and not pushed.reads("main/g1/p1")
    wants = pushed.wants(lambda topic: topic != "a/c")
    assert wants is not None
    assert [word for word in ("a/a", "a/b", "a/c", "b") if wants(word)] == ["a/a"]
    assert push([])[0].wants(None) is None and push([])[0].end_lsn == LSN_END


@pytest.mark.parametrize(
    ("conditions", "subscribed", "filters", "ranges"),
    [
        ([EqualTo(TOPIC, "a/b")], (), ("a/b",), [("a/b", "a/b\0")]),
        ([In(TOPIC, ["a", "a/b", "+", "c"]), StringStartsWith(TOPIC, "a")], (), ("a", "a/b"), None),
        ([EqualTo(TOPIC, "a/b")], ("c/#",), None, None),
        ([EqualNullSafe(TOPIC, "a/b")], ("a/+",), ("a/b",), None),
        ([StringStartsWith(TOPIC, "a/b/c")], (), ("a/b/#",), [("a/b/c", "a/b/d")]),
        ([StringStartsWith(TOPIC, "a")], (), (), [("a", "b")]),
        ([StringStartsWith(TOPIC, "a/")], ("+/x",), ("+/x",), [("a/", "a0")]),
        ([Not(EqualTo(TOPIC, "a/b"))], (), (), None),
    ],
)
def test_topics_become_filters_of_a_server_and_bounds_of_files(
    conditions: list[Any], subscribed: tuple[str, ...], filters: Any, ranges: Any
) -> None:
    from rumq.table.scan import topic_matcher

    pushed, left = push(conditions)
    assert left == []
    assert pushed.filters(subscribed, topic_matcher(subscribed, None)) == filters
    if ranges is not None:
        assert pushed.ranges(None) == ranges


class Counting(RealFiles):
    """Counts the bytes that are read of segments and their indexes."""

    total = 0

    def read(self, handle: int, position: int, size: int) -> bytes:
        found = super().read(handle, position, size)
        Counting.total += len(found)
        return found


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    monkeypatch.setattr(partition_ranges, "RealFiles", Counting)
    monkeypatch.setattr(partition_ranges, "_views", {})

    def since() -> int:
        found, Counting.total = Counting.total, 0
        return found

    return since


CONDITIONS: list[list[Any]] = [
    [],
    [EqualTo(TOPIC, "alarm")],
    [In(TOPIC, ["alarm", "plant/3/temp"])],
    [StringStartsWith(TOPIC, "alarm"), GreaterThan(LSN, 4_000)],
    [GreaterThanOrEqual(TS, at(NOW + 70 * SECOND_US)), LessThan(TS, at(NOW + 75 * SECOND_US))],
    [EqualTo(TS, at(NOW + 71 * SECOND_US)), Not(EqualTo(TOPIC, "plant/3/temp"))],
    [GreaterThanOrEqual(LSN, 105), LessThanOrEqual(LSN, 106)],
    [EqualTo(PARTITION, "main/g1/p7")],
    [LessThan(TOPIC, "b"), GreaterThan(TS, at(NOW + 10**15))],
    [EqualTo(TS, at(-5))],
]


def write(root: str) -> None:
    """100 chunks of 100 records, a second each; every 25th has an alarm."""
    store = store_at(root, segment_bytes_max=150_000)
    publisher = Publisher(store.own[0])
    for n in range(100):
        messages = [message(f"plant/{m % 7}/temp", b"x" * 90) for m in range(99)]
        messages.append(message("alarm" if n % 25 == 0 else "plant/3/temp", b"%d" % n))
        publisher.chunk(messages, NOW + n * SECOND_US)
        index(store.own[0])
    mark(store.own[0])
    store.close()


def rows_of(reader: RumqReader) -> list[tuple[str, int]]:
    tables = [batch.to_pydict() for part in reader.partitions() for batch in reader.read(part)]
    return [row for table in tables for row in zip(table["topic"], table["lsn"], strict=True)]


def reader_of(root: dict[str, str], *columns: str) -> RumqReader:
    options = parse(root, now_us=NOW)
    schema = schema_of(options)
    return RumqReader(options, StructType([schema[name] for name in columns]))


def holds(condition: Any, row: dict[str, Any]) -> bool:
    """What Spark would say."""
    if isinstance(condition, Not):
        return not holds(condition.child, row)
    value = row[condition.attribute[0]]
    match type(condition).__name__:
        case "EqualTo":
            return bool(value == condition.value)
        case "In":
            return value in condition.value
        case "StringStartsWith":
            return bool(value.startswith(condition.value))
        case "GreaterThan":
            return bool(value > condition.value)
        case "GreaterThanOrEqual":
            return bool(value >= condition.value)
        case "LessThan":
            return bool(value < condition.value)
    return bool(value <= condition.value)


def expected(everything: list[dict[str, Any]], conditions: list[Any]) -> list[tuple[str, int]]:
    kept = [row for row in everything if all(holds(each, row) for each in conditions)]
    return sorted((row["topic"], row["lsn"]) for row in kept)


def everything_of(root: dict[str, str]) -> list[dict[str, Any]]:
    reader = reader_of(root, "topic", "lsn", "ts", "partition")
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


@pytest.mark.parametrize("where", ["log", "lake", "flight"])
def test_the_same_rows_come_wherever_they_are_read(tmp_path: Path, where: str) -> None:
    history = History(tmp_path)
    history.publish(60)
    if where == "lake":
        history.export()
        history.remove(1)
    history.close()
    start = history.view(0).segments()[0].first_ts if where != "lake" else NOW - NOW % 3_600_000_000
    conditions = [
        [EqualTo(TOPIC, "plant/3/temp")],
        [StringStartsWith(TOPIC, "plant/3/"), LessThan(LSN, 300)],
        [GreaterThan(TS, at(start + 1_000 * SECOND_US)), LessThanOrEqual(TS, at(start + 3_000 * SECOND_US))],
        [EqualTo(TS, at(start + 2_000 * SECOND_US)), EqualTo(PARTITION, "main/g1/p1")],
        [Not(EqualTo(TOPIC, "other")), GreaterThanOrEqual(LSN, 120)],
    ]
    with served(history.data) as server:
        place = {"broker": server.address} if where == "flight" else {"path": history.data}
        everything = everything_of(place)
        assert len(everything) == 1200
        for each in conditions:
            reader = reader_of(place, "topic", "lsn")
            assert reader.pushFilters(each) == []
            found = rows_of(reader)
            assert found and sorted(found) == expected(everything, each), each


def test_conditions_on_topic_time_and_lsn_read_a_part_of_the_bytes(tmp_path: Path, counted: Callable[[], int]) -> None:
    root = {"path": str(tmp_path / "d")}
    write(root["path"])
    everything = everything_of(root)
    counted()
    read = []
    for conditions in CONDITIONS:
        reader = reader_of(root, "topic", "lsn")
        assert reader.pushFilters(conditions) == []
        partition_ranges._views.clear()
        assert sorted(rows_of(reader)) == expected(everything, conditions), conditions
        read.append(counted())
    whole = read[0]
    assert read[1] < whole / 4, "four chunks of a hundred, the last segment and the indexes"
    assert read[4] < whole / 4 and read[5] < whole / 4
    assert read[6] < whole / 10
    assert max(read[7:]) < whole / 20, "nothing is there to read"


def test_what_cannot_be_read_is_told_unless_an_index_says_that_it_is_not_wanted(tmp_path: Path) -> None:
    from rumq.table.errors import DataLoss

    root = str(tmp_path / "d")
    write(root)
    first = partition_ranges.maybe_view(root, "main/g1/p0")
    assert first is not None
    segment = first.segments()[1]
    with open(segment.path, "r+b") as file:
        file.seek(segment.places[1].position + 200)
        file.write(b"\xff" * 64)
    reader = reader_of({"path": root}, "topic", "lsn")
    with pytest.raises(DataLoss):
        rows_of(reader)
    within = at(segment.places[1].base_ts)
    reader.pushFilters([EqualTo(TS, within)])
    reader._spans = None
    with pytest.raises(DataLoss):
        rows_of(reader)
    reader = reader_of({"path": root}, "topic", "lsn")
    reader.pushFilters([EqualTo(TOPIC, "alarm")])
    assert len(rows_of(reader)) == 4


@pytest.mark.spark
def test_explain_shows_what_the_source_does_and_counts_are_the_same(
    spark: Any, place: Callable[[str], dict[str, str]], data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = spark.read.format("rumq").options(**place(data)).load()
    middle = f"timestamp_micros({NOW + 150 * SECOND_US})"
    chosen = frame.where(
        f"topic in ('plant/1/temp', 'plant/2/temp') and ts >= {middle} and lsn between 160 and 290 and qos = 1"
    )
    chosen.explain("formatted")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("PushedFilters")]
    for name in ("In(topic", "GreaterThanOrEqual(ts", "LessThanOrEqual(lsn"):
        assert name in line
    assert "qos" not in line
    plain = [row for row in frame.collect() if row.topic != "plant/0/temp" and row.qos == 1]
    wanted = [row.lsn for row in plain if 160 <= row.lsn <= 290]
    assert sorted(row.lsn for row in chosen.collect()) == wanted and wanted
    like = frame.where("topic like 'plant/2/%' and partition = 'main/g1/p0'")
    assert like.count() == 100


@pytest.mark.spark
def test_a_session_that_pushes_no_filters_reads_on_without(spark: Any, data: str) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    assert spark.conf.get(name) == "true"
    spark.conf.set(name, "false")
    try:
        assert spark.read.format("rumq").load(data).where("topic = 'plant/1/temp'").count() == 100
    finally:
        spark.conf.set(name, "true")
