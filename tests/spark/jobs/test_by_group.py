"""Jobs that keep a state for each group: anomaly, geofence."""

import statistics
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (pip install 'rumq[spark]')")
pytest.importorskip("vega_datasets", reason="vega_datasets is not installed (pip install 'rumq[examples]')")

from rumq.spark import with_json, with_topic_parts
from rumq.spark.job_kit.geofences import Fence
from rumq.spark.jobs.anomaly import anomaly
from rumq.spark.jobs.geofence import geofence
from tests.spark.jobs.logs import Reading, as_json, collected, streamed, write_log

pytestmark = pytest.mark.spark
SPIKES = {40: 45.0, 150: -30.0, 151: -31.0, 299: 60.0}  # reading -> degrees instead


def far_ones(values: list[float], k: float, least: int) -> dict[int, tuple[float, float, float]]:
    """From the definition, each over all before it: number -> mean, sd, z."""
    found = {}
    for n in range(least, len(values)):
        mean, sd = statistics.fmean(values[:n]), statistics.stdev(values[:n])
        if abs(values[n] - mean) / sd > k:
            found[n] = (mean, sd, (values[n] - mean) / sd)
    return found


def test_spikes_in_real_temperatures_are_found_in_a_batch_and_in_a_stream(
    spark: Any, tmp_path: Path, readings: list[Reading]
) -> None:
    """The state goes on from batch to batch: the same rows with the same numbers."""
    root = str(tmp_path / "data")
    seattle = [celsius for city, _, celsius in readings if city == "seattle"][:300]
    values = [SPIKES.get(n, celsius) for n, celsius in enumerate(seattle)]
    write_log(root, [as_json("weather/seattle", n=n, celsius=c) for n, c in enumerate(values)], chunk=50)
    expected = far_ones(values, 4.0, 30)
    assert set(expected) == set(SPIKES)
    for kind in ("batch", "stream"):
        reads = spark.read if kind == "batch" else spark.readStream.option("maxOffsetsPerTrigger", 100)
        rows = with_json(reads.format("rumq").load(root), "n int, celsius double")
        found = anomaly(rows.withColumn("again", rows.celsius), "again", time="n", k=4.0).where("far")
        told = collected(found) if kind == "batch" else streamed(spark, found, "far")
        assert {row["n"] for row in told} == set(SPIKES)
        for row in told:
            assert (row["mean"], row["sd"], row["z"]) == pytest.approx(expected[row["n"]], rel=1e-9)


def test_a_value_after_many_equal_ones_is_far_and_none_is_before_enough_came(spark: Any) -> None:
    rows = [("a", n, 1.0) for n in range(30)] + [
        ("a", 30, None),
        ("a", 31, float("nan")),
        ("a", 32, 1.0),
        ("a", 33, 1.5),
    ]
    rows += [("b", n, 1.0) for n in range(29)] + [("b", 29, 99.0)]
    frame = spark.createDataFrame(rows, "topic string, ts int, x double")
    found = anomaly(frame, "x").where("far").collect()
    assert [(row.topic, row.ts, row.mean, row.sd, row.z) for row in found] == [("a", 33, 1.0, 0.0, None)]


SQUARE = Fence("square", (((0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)), ((4.0, 4.0), (6.0, 4.0), (5.0, 6.0))))
ROUND = Fence("round", (), (20.0, 0.0), 500_000.0)
TRACK = [
    (-1, 5),
    (1, 5),
    (2, 5),
    (5, 4.5),
    (9, 5),
    (12, 0),
    (16, 0),
    (20, 4),
    (24, 0),
    (25, 0),
    (20, 0),
    (5, 1),
]
EVENTS = [
    (1, "square", "enter"), (3, "square", "leave"), (4, "square", "enter"), (5, "square", "leave"),
    (6, "round", "enter"), (9, "round", "leave"), (10, "round", "enter"), (11, "round", "leave"),
    (11, "square", "enter"),
]  # fmt: skip


def test_a_truck_enters_and_leaves_in_a_batch_and_in_a_stream(spark: Any, tmp_path: Path) -> None:
    """Also out of order within a batch, by the time that the device says; a position that is missing is none."""
    root = str(tmp_path / "data")
    order = [0, 2, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    sent = [as_json("fleet/7/position", n=n, lon=TRACK[n][0], lat=TRACK[n][1]) for n in order]
    sent.insert(5, as_json("fleet/7/position", n=4, lon=50.0))
    sent.append(as_json("fleet/8/position", n=0, lon=5, lat=1))
    write_log(root, sent, chunk=4)
    for kind in ("batch", "stream"):
        reads = spark.read if kind == "batch" else spark.readStream.option("maxOffsetsPerTrigger", 4)
        rows = with_topic_parts(reads.format("rumq").load(root), "fleet/{truck}/position")
        rows = with_json(rows, "n int, lon double, lat double")
        found = geofence(rows, [SQUARE, ROUND], ["truck"], "n")
        told = collected(found) if kind == "batch" else streamed(spark, found, "fences")
        assert sorted((r["truck"], r["n"], r["fence"], r["event"]) for r in told) == sorted(
            [("7", *event) for event in EVENTS] + [("8", 0, "square", "enter")]
        )
