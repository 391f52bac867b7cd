"""Columns out of topics and payloads, and messages out of columns. docs/guides/spark.md, "Jobs"."""

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
pytest.importorskip("vega_datasets", reason="vega_datasets is not installed (pip install 'rumq[examples]')")

from rumq.spark import as_messages, with_json, with_topic_parts
from rumq.spark.job_kit.dataframe_columns import of_topic, topic_parts
from rumq.table.errors import BadOption, NoColumn

pytestmark = pytest.mark.spark
SCHEMA = "a double, b string"
NOT_JSON, NO_OBJECT, OTHER = "not JSON", "JSON, but not an object", f"JSON, but not of the schema: {SCHEMA}"
PAYLOADS: list[tuple[bytes | None, float | None, str | None, str | None]] = [
    (b'{"a": 1, "b": "x"}', 1.0, "x", None),
    (b' {"b": "x", "c": [2]}\n', None, "x", None),
    (b"{}", None, None, None),
    (b'{"a": null}', None, None, None),
    (b'{"a": "hot", "b": "x"}', None, None, OTHER),
    (b'{"a": 1', None, None, NOT_JSON),
    (b'{"a": 1} tail', None, None, NOT_JSON),
    (b'{"a": 1}{"a": 2}', None, None, NOT_JSON),
    (b'{"a": 1}, {"a": 2}', None, None, NOT_JSON),
    (b'{"a": 1}, "x": 3', None, None, NOT_JSON),
    (b'{"a": 1}], "x": [{}', None, None, NOT_JSON),
    (b'{"a": 1}]}', None, None, NOT_JSON),
    (b'{"a": 1, "b": "]"}', 1.0, "]", None),
    (b'{"a": NaN}', None, None, NOT_JSON),
    (b'[{"a": 1}]', None, None, NO_OBJECT),
    (b"3", None, None, NO_OBJECT),
    (b"null", None, None, NO_OBJECT),
    (b'"x"', None, None, NO_OBJECT),
    (b"\xff\xfe", None, None, "not UTF-8"),
    (b'{"b": "\xff"}', None, None, "not UTF-8"),
    (b"", None, None, "empty"),
    (None, None, None, "empty"),
    (b" \n ", None, None, "empty"),
]


def test_what_is_json_of_the_schema_has_columns_and_what_is_not_says_why(spark: Any) -> None:
    rows = [(n, payload) for n, (payload, *_) in enumerate(PAYLOADS)]
    found = with_json(spark.createDataFrame(rows, "n int, payload binary").coalesce(1), SCHEMA, bad="why")
    said = {row.n: (row.a, row.b, row.why) for row in found.collect()}
    assert said == {n: tuple(expected) for n, (_, *expected) in enumerate(PAYLOADS)}


def test_good_payloads_are_parsed_once(spark: Any) -> None:
    frame = with_json(spark.createDataFrame([(b"{}",)], "payload binary"), SCHEMA)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("from_json(") == 1


def test_a_field_takes_the_place_of_a_column_of_its_name(spark: Any) -> None:
    """Devices say `ts`, too: theirs counts."""
    frame = spark.createDataFrame([("t", 5, b'{"ts": 7, "payload": "p"}')], "topic string, ts int, payload binary")
    (row,) = with_json(frame, "ts int, payload string").collect()
    assert row.asDict() == {"topic": "t", "ts": 7, "payload": "p"}


def test_levels_of_a_topic_are_columns(spark: Any) -> None:
    topics = [
        "plant/7/dev/a",
        "plant/7/dev",
        "plant/7/other/a",
        "plant/7/dev/a/b",
        "plant//dev/",
        "x/7/dev/a",
    ]
    frame = spark.createDataFrame([(topic,) for topic in topics], "topic string").coalesce(1)
    found = with_topic_parts(frame, "plant/{plant}/dev/{device}").collect()
    assert [(row.plant, row.device) for row in found] == [
        ("7", "a"), (None, None), (None, None), (None, None), ("", ""), (None, None),
    ]  # fmt: skip
    longer = with_topic_parts(frame, "plant/+/{kind}/#").where(of_topic("plant/+/{kind}/#")).collect()
    assert [(row.topic, row.kind) for row in longer] == [
        ("plant/7/dev/a", "dev"), ("plant/7/dev", "dev"), ("plant/7/other/a", "other"),
        ("plant/7/dev/a/b", "dev"), ("plant//dev/", "dev"),
    ]  # fmt: skip


@pytest.mark.parametrize("pattern", ["a/{b}c", "a/{b}/{b}", "a/#/b", "a/{}", "a/{1}", "a/b#"])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    with pytest.raises(BadOption, match="each name once"):
        topic_parts(pattern)


def test_rows_become_messages(spark: Any) -> None:
    frame = spark.createDataFrame([("a/b", "x+/#", None, 1.5)], "topic string, city string, none string, mean double")
    (row,) = as_messages(frame, "{topic}/of/{city}/{none}").collect()
    assert row.asDict() == {"topic": "a/b/of/x___/_", "payload": '{"topic":"a/b","city":"x+/#","mean":1.5}'}
    raw = spark.createDataFrame([("a", b"\x00", True, 3)], "topic string, payload binary, retain boolean, lsn int")
    (row,) = as_messages(raw, "again/{topic}").collect()
    assert row.asDict() == {"topic": "again/a", "payload": b"\x00", "retain": True}


def test_what_cannot_be_is_a_sentence(spark: Any) -> None:
    frame = spark.createDataFrame([("a", b"")], "topic string, payload binary")
    with pytest.raises(NoColumn, match="there is no column topik: did you mean topic"):
        as_messages(frame, "x/{topik}")
    with pytest.raises(NoColumn, match="no column payload: there are topic"):
        with_json(frame.drop("payload"), SCHEMA)
    with pytest.raises(BadOption, match="celsius dubble"):
        with_json(frame, "celsius dubble")
    for one_type in ("int", "array<struct<celsius: double>>"):
        with pytest.raises(BadOption, match="columns and their types"):
            with_json(frame, one_type)
