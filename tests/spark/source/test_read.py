"""The log as a table, from its files and from a Flight server: the same. docs/guides/spark.md."""

import shutil
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from rumq.flight.serving.served_log import ServedLog
from rumq.flight.tickets import Ticket
from rumq.spark.source.data_source import RumqDataSource
from rumq.table.arrow.columns import Columns
from tests.commitlog.records import NOW

pytestmark = pytest.mark.spark
Place = Callable[[str], dict[str, str]]


def test_a_row_a_message_with_every_column(spark: Any, place: Place, data: str) -> None:
    rows = spark.read.format("rumq").options(minPartitions="3", **place(data)).load().collect()
    assert [row.lsn for row in rows] == list(range(300))
    assert [bytes(row.payload) for row in rows] == [b"%d" % n for n in range(300)]
    row = rows[10]
    assert (row.topic, row.topic_offset, row.partition, row.qos) == ("plant/1/temp", 3, "main/g1/p0", 0)
    assert (row.client_id, row.content_type, row.retain) == ("device-7", "x", False)
    assert [(p.key, p.value) for p in row.properties] == [("n", "10"), ("n", "again")]
    assert rows[11].properties == [] and rows[11].content_type is None
    assert rows[299].retain
    assert round(rows[299].ts.timestamp() * 1e6) == NOW + 299 * 1_000_000


def test_filters_ranges_and_times_choose_rows(spark: Any, place: Place, data: str) -> None:
    frames = [
        spark.read.format("rumq").options(**options, **place(data)).load()
        for options in (
            {"subscribe": "plant/1/+, other/#"},
            {"subscribePattern": "plant/[12]/temp"},
            {"startingOffsets": '{"main/g1/p0": 250}', "assign": '["main/g1/p0"]'},
            {"endingOffsets": '{"main/g1/p0": 250}', "maxRecordsPerPartition": "70"},
            {"startingTimestamp": str((NOW + 99 * 1_000_000) // 1000)},
            {"startingOffsets": "tail:7"},
            {"startingOffsets": "latest"},
        )
    ]
    both = frames[0].selectExpr("0 as query")
    for number, frame in enumerate(frames[1:], 1):
        both = both.unionAll(frame.selectExpr(f"{number} as query"))
    found = {row["query"]: row["count"] for row in both.groupBy("query").count().collect()}
    assert found == {0: 100, 1: 200, 2: 50, 3: 250, 4: 220, 5: 7}


def test_an_expression_needs_no_topic_among_the_columns(spark: Any, place: Place, data: str) -> None:
    options = {"subscribePattern": "plant/[12]/temp", **place(data)}
    assert spark.read.format("rumq").schema("lsn bigint").options(**options).load().count() == 200


def test_a_narrow_schema_reads_those_columns(
    spark: Any, place: Place, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark gives each row the names of the schema, whatever the source has read: only the values show it."""
    asked = record_asked_columns(monkeypatch)
    named = place(data)
    frame = spark.read.format("rumq").schema("payload binary, topic string, lsn bigint").options(**named).load()
    rows = [(bytes(row.payload), row.topic, row.lsn) for row in frame.collect()]
    assert sorted(rows, key=itemgetter(2)) == [(b"%d" % n, f"plant/{n % 3}/temp", n) for n in range(300)]
    # Workers are other processes; the server is in this one.
    assert set(asked) == (set() if "path" in named else {("payload", "topic", "lsn")})


def test_a_narrow_schema_makes_no_other_columns(place: Place, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise in this process, for files: columns that nobody asked for are not even made from the log."""
    made: list[str] = []
    array = Columns.array
    monkeypatch.setattr(Columns, "array", lambda self, name: made.append(name) or array(self, name))
    schema = StructType([StructField("payload", BinaryType()), StructField("topic", StringType())])
    reader = RumqDataSource(place(data)).reader(schema)
    (part,) = reader.partitions()
    batches = list(reader.read(part))
    assert [value for batch in batches for value in batch.column("payload").to_pylist()] == [
        b"%d" % n for n in range(300)
    ]
    assert set(made) == {"payload", "topic"}


def record_asked_columns(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The columns of each ticket that a server in this process gets."""
    asked: list[tuple[str, ...]] = []
    batches = ServedLog.batches

    def noted(log: ServedLog, ticket: Ticket, caller: Any) -> Any:
        asked.append(ticket.columns)
        return batches(log, ticket, caller)

    monkeypatch.setattr(ServedLog, "batches", noted)
    return asked


def test_the_names_and_types_of_the_kafka_source(spark: Any, place: Place, data: str) -> None:
    frame = spark.read.format("rumq").options(schemaStyle="kafka", includeHeaders="true", **place(data)).load()
    row = frame.where("offset = 20").collect()[0]
    assert (bytes(row.key), bytes(row.value), row.topic, row.timestampType) == (
        b"device-7",
        b"20",
        "plant/2/temp",
        1,
    )
    assert [(h.key, bytes(h.value)) for h in row.headers] == [("n", b"20"), ("n", b"again")]


def test_properties_as_a_map(spark: Any, place: Place, data: str) -> None:
    options = {"properties": "map", "endingOffsets": '{"main/g1/p0": 21}', **place(data)}
    frame = spark.read.format("rumq").options(**options).load()
    assert [row.properties for row in frame.collect()][19:] == [{}, {"n": "again"}]


@pytest.mark.parametrize(
    ("options", "says"),
    [({"sbscribe": "a"}, "there is no option sbscribe: did you mean subscribe?"),
     ({"stream": "other"}, "one of the streams: main"),
     ({"startingOffsets": '{"main/g1/p0": 301}'}, "no more than where the log ends, 300")],
)  # fmt: skip
def test_a_wrong_option_is_named(spark: Any, place: Place, data: str, options: dict[str, str], says: str) -> None:
    with pytest.raises(Exception, match=says):
        spark.read.format("rumq").options(**options, **place(data)).load().count()


def test_damage_ends_the_query_with_its_range(spark: Any, place: Place, data: str, tmp_path: Path) -> None:
    copied = tmp_path / "data"
    shutil.copytree(data, copied)
    first = sorted((copied / "main/g1/p0").glob("*.seg"))[0]
    content = bytearray(first.read_bytes())
    content[4096 + 130] ^= 1
    first.write_bytes(content)
    with pytest.raises(Exception, match="records 0 to 19 of main/g1/p0 cannot be read"):
        spark.read.format("rumq").options(**place(str(copied))).load().count()
    tolerant = spark.read.format("rumq").options(failOnDataLoss="false", **place(str(copied)))
    assert tolerant.load().count() == 280
