"""Jobs with windows of time: downsample, sessions, dedupe."""

import math
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
pytest.importorskip("vega_datasets", reason="vega_datasets is not installed (pip install 'rumq[examples]')")

from rumq.spark import with_json, with_topic_parts
from rumq.spark.jobs.dedupe import dedupe
from rumq.spark.jobs.downsample import downsample
from rumq.spark.jobs.sessions import sessions
from rumq.table.errors import NoColumn
from tests.commitlog.records import NOW
from tests.spark.jobs.logs import Reading, as_json, collected, streamed, write_log, write_timed

pytestmark = pytest.mark.spark
HOUR = 3600.0


def shaped(rows: Any) -> Any:
    return with_json(with_topic_parts(rows, "weather/{city}/temperature"), "time timestamp, celsius double")


def days(readings: list[Reading]) -> dict[tuple[str, datetime], list[float]]:
    found: dict[tuple[str, datetime], list[float]] = defaultdict(list)
    for city, time, celsius in readings:
        found[city, datetime.fromisoformat(time[:10])].append(celsius)
    return found


def check_days(rows: list[dict[str, Any]], expected: dict[tuple[str, datetime], list[float]]) -> None:
    assert {(row["city"], row["start"]) for row in rows} == set(expected) and len(rows) == len(expected)
    for row in rows:
        values = expected[row["city"], row["start"]]
        assert (row["count"], row["celsius_min"], row["celsius_max"]) == (
            len(values),
            min(values),
            max(values),
        )
        assert math.isclose(row["celsius_mean"], math.fsum(values) / len(values), rel_tol=1e-12)


def test_a_year_of_temperatures_by_day(spark: Any, weather_log: str, readings: list[Reading]) -> None:
    rows = shaped(spark.read.format("rumq").load(weather_log))
    check_days(collected(downsample(rows, "1 day", ["celsius"], ["city"], "time")), days(readings))


def test_a_stream_gives_a_window_once_no_row_of_it_can_come(spark: Any, tmp_path: Path) -> None:
    """Batch after batch the windows of the batch query, but those that may not be full."""
    root = str(tmp_path / "data")
    made = [("a", f"2010-01-01T{n // 60:02}:{n % 60:02}:00", float(n)) for n in range(300)]
    write_log(root, [as_json(f"weather/{c}/temperature", time=t, celsius=v) for c, t, v in made], chunk=50)
    rows = spark.readStream.format("rumq").option("maxOffsetsPerTrigger", 150).load(root)
    found = streamed(spark, downsample(shaped(rows), "1 hour", ["celsius"], ["city"], "time", "30 minutes"), "hours")
    assert sorted((row["start"].hour, row["count"], row["celsius_mean"]) for row in found) == [
        (0, 60, 29.5), (1, 60, 89.5), (2, 60, 149.5), (3, 60, 209.5),
    ]  # fmt: skip


def test_a_column_that_is_not_there_is_named(spark: Any) -> None:
    frame = spark.createDataFrame([], "topic string, ts timestamp, celsius double")
    with pytest.raises(NoColumn, match="no column celcius: did you mean celsius"):
        downsample(frame, "1 day", ["celcius"])


def test_sessions_end_at_a_gap(spark: Any, tmp_path: Path) -> None:
    """However messages of devices lie between each other. Only a longer gap parts."""
    root = str(tmp_path / "data")
    times = {"a": [0, 60, 200, 499, 800, 801], "b": [30, 330], "c": [10]}
    parts = sorted((second, client) for client, seconds in times.items() for second in seconds)
    write_timed(root, ((s, client, [as_json(f"dev/{client}")]) for s, client in parts))
    expected = []
    for client, seconds in times.items():
        run = [seconds[0]]
        for second in [*seconds[1:], 10_000]:
            if second - run[-1] > 300:
                expected.append((client, run[0], run[-1], len(run)))
                run = []
            run.append(second)
    begin = datetime(1970, 1, 1) + timedelta(microseconds=NOW)

    def told(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        seconds = [((r["start"] - begin).total_seconds(), (r["end"] - begin).total_seconds()) for r in rows]
        return sorted((r["client_id"], *s, r["count"]) for r, s in zip(rows, seconds, strict=True))

    batch = spark.read.format("rumq").load(root)
    assert told(collected(sessions(batch, "5 minutes"))) == sorted(expected)
    rows = spark.readStream.format("rumq").option("maxOffsetsPerTrigger", 4).load(root)
    ended = [one for one in expected if one[2] + 300 <= 801 - 60]
    assert len(ended) == 2
    assert told(streamed(spark, sessions(rows, "5 minutes", late="1 minute"), "sessions")) == sorted(ended)


def test_a_message_that_a_device_sends_again_is_there_once(spark: Any, tmp_path: Path) -> None:
    root = str(tmp_path / "data")
    sent: list[tuple[float, str, int | None]] = [
        (0, "a", 1), (1, "a", 2), (2, "b", 1),
        (3, "a", 2), (4, "a", None), (5, "a", None),
        (6, "a", 1), (9, "b", 2), (9000, "a", 3),
        (9001, "b", 3), (9002, "a", 3), (9003, "c", 1),
        (9500, "a", 1), (9501, "a", 3), (9502, "b", 1),
    ]  # fmt: skip
    fields = [{} if seq is None else {"seq": seq} for _, _, seq in sent]
    write_timed(
        root,
        (
            (s, client, [as_json(f"dev/{client}", n=n, **more)])
            for n, ((s, client, _), more) in enumerate(zip(sent, fields, strict=True))
        ),
    )
    expected, seen = [], {}
    for n, (second, client, seq) in enumerate(sent):
        before = seen.get((client, seq))
        if seq is None or before is None or second - before > HOUR:
            expected.append(n)
        seen[client, seq] = second
    assert expected == [0, 1, 2, 4, 5, 7, 8, 9, 11, 12, 14]
    batch = with_json(spark.read.format("rumq").load(root), "seq bigint, n int")
    keys = ["client_id", "seq"]
    assert sorted(row["n"] for row in collected(dedupe(batch, keys, within="1 hour"))) == expected
    stream = with_json(
        spark.readStream.format("rumq").option("maxOffsetsPerTrigger", 3).load(root), "seq bigint, n int"
    )
    found = streamed(spark, dedupe(stream, keys, within="1 hour"), "once")
    assert sorted(row["n"] for row in found) == expected
    assert "_own" not in found[0] and "_time" not in found[0]


def test_without_a_key_the_payload_counts(spark: Any, tmp_path: Path) -> None:
    root = str(tmp_path / "data")
    parts = [(0, "a", "x", 1), (1, "a", "x", 1), (2, "b", "x", 1), (3, "a", "y", 1), (4, "a", "x", 2)]
    write_timed(root, ((s, client, [as_json(topic, v=v)]) for s, client, topic, v in parts))
    found = collected(dedupe(spark.read.format("rumq").load(root)))
    assert sorted(row["lsn"] for row in found) == [0, 2, 3, 4]
    assert "_hash" not in found[0]
