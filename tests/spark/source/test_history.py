"""All of a log as one table: Spark reads the lake by itself, format "rumq" the rest.

docs/guides/spark.md, "History"."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rumq import lake as the_lake
from rumq.mqtt.topics import matches
from rumq.spark import mqtt_filter_to_predicate, read
from rumq.table.errors import BadColumn, BadOption, DataLoss
from tests.spark.histories import FULL_HOUR, History

pytestmark = pytest.mark.spark
BOTH = ["main/g1/p0", "main/g1/p1"]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    """Hours of records, of which the log has only the last."""
    made = History(tmp_path_factory.mktemp("past"))
    made.publish(80)
    made.export()
    made.remove(2)
    yield made
    made.close()


def every(count: int) -> list[tuple[str, int]]:
    return [(name, lsn) for name in BOTH for lsn in range(count)]


def places(frame: Any) -> list[tuple[str, int]]:
    return sorted((row.partition, row.lsn) for row in frame.select("partition", "lsn").collect())


def test_every_record_is_there_once_as_the_format_has_it(spark: Any, past: History) -> None:
    frame = read(spark, past.data)
    plain = spark.read.format("rumq").load(past.data)
    assert frame.schema == plain.schema
    order = ["partition", "lsn"]
    rows = frame.orderBy(order).collect()
    assert len(rows) == 1600 and rows == plain.orderBy(order).collect()
    assert len(frame.inputFiles()) == len(the_lake.files(past.lake)) > 10


def test_topics_times_and_columns_choose_rows_and_files(spark: Any, past: History) -> None:
    def at(chunk: int) -> datetime:
        return datetime.fromtimestamp((FULL_HOUR + chunk * 100_000_000) / 1e6, UTC)

    files = len(the_lake.files(past.lake))
    frame = read(spark, past.data, ["plant/+/temp", "plant/3/#"], at(10), at(75), ["lsn", "topic", "payload"])
    assert frame.columns == ["lsn", "topic", "payload"] and len(frame.inputFiles()) < files
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [Or(And(GreaterThanOrEqual(topic,plant),LessThan(topic,plant0))" in plan
    expected = [
        (f"plant/{n % 7}/{kind}", b"%d" % n)
        for n in range(10, 75)
        for kind in ("temp", "speed")
        if kind == "temp" or n % 7 == 3
    ]
    found = [(row.topic, bytes(row.payload)) for row in frame.collect()]
    assert sorted(found) == sorted(2 * expected)
    old = read(spark, past.data, end={BOTH[0]: 33, BOTH[1]: 0}, columns=["lsn", "partition"])
    assert places(old) == every(33)[:33] and len(old.inputFiles()) <= 2
    assert read(spark, past.data, "nothing/here").count() == 0
    assert read(spark, past.data, start="latest").count() == 0
    assert places(read(spark, past.data, start="tail:7")) == [(p, n) for p in BOTH for n in range(793, 800)]


def test_what_cannot_be_asked_for_is_said(spark: Any, past: History) -> None:
    with pytest.raises(BadColumn, match="column paylod of the schema: no such column; did you mean payload"):
        read(spark, past.data, columns=["paylod"])
    with pytest.raises(BadOption, match="subscribe"):
        read(spark, past.data, "a/#/b")
    with pytest.raises(BadOption, match=r"topics = .*without a comma"):
        read(spark, past.data, ["a,b"])


def test_a_query_gives_each_record_once_whatever_happens_before_it_runs(spark: Any, tmp_path: Path) -> None:
    """Sealed, exported, merged and removed in between; the frame is what it was when it was made."""
    history = History(tmp_path)
    history.publish()
    history.export(merge_at=1000, keep_s=100)
    frame = read(spark, history.data)
    history.publish()
    history.export(merge_at=1050, keep_s=100)
    history.remove(1)
    assert history.view(0).first_lsn > 200
    assert places(frame) == every(200)
    later = read(spark, history.data)
    history.publish(30)
    history.export(merge_at=1100, keep_s=100)
    history.remove(1)
    assert history.view(0).first_lsn > 400
    assert places(later) == places(later) == every(400)
    history.export(merge_at=1300, keep_s=100)
    assert places(read(spark, history.data)) == every(700)
    history.close()


def test_what_neither_has_ends_the_query_before_it_runs(spark: Any, tmp_path: Path) -> None:
    history = History(tmp_path)
    history.publish()
    history.export()
    history.publish()
    history.remove(2)
    history.export()
    with pytest.raises(DataLoss, match="retention removed them before they were exported"):
        read(spark, history.data)
    left = places(read(spark, history.data, fail_on_data_loss=False))
    assert len(left) == len(set(left)) < 800
    history.close()


LEVEL = st.sampled_from(["", "a", "b", "$a", "+x", ".", "a.b", "a\n", "(", "\\E", "é", "😀", "a b", "0", "-"])
TOPICS = st.lists(LEVEL, min_size=1, max_size=4).map("/".join)
NAMES = TOPICS.filter(lambda topic: topic and "+" not in topic)
FILTERS = st.lists(st.one_of(LEVEL.filter(lambda level: level != "+x"), st.just("+")), min_size=1, max_size=4)


@st.composite
def topic_filters(draw: st.DrawFn) -> str:
    return "/".join(draw(FILTERS) + (["#"] if draw(st.booleans()) else []))


@settings(max_examples=4, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    st.lists(NAMES, min_size=150, max_size=200, unique=True),
    st.lists(topic_filters().filter(bool), min_size=60, max_size=60, unique=True),
)
def test_a_topic_filter_as_a_condition_covers_what_the_broker_says(
    spark: Any, topics: list[str], filters: list[str]
) -> None:
    columns = [mqtt_filter_to_predicate(each).alias(str(n)) for n, each in enumerate(filters)]
    rows = spark.createDataFrame([(topic,) for topic in topics], "topic string").select("topic", *columns)
    for row in rows.collect():
        covered = {filters[n] for n, yes in enumerate(row[1:]) if yes}
        assert covered == {each for each in filters if matches(each, row.topic)}, row.topic
