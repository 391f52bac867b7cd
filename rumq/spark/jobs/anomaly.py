"""Values that are far from the running mean of their topic: mean and variance after Welford, kept between batches.

B. P. Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics 4 (1962).

rumqd spark run anomaly --json 'time timestamp, celsius double' --value celsius --k 4"""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

import pandas as pd
from pyspark.sql import DataFrame

from rumq.spark.job_kit.dataframe_columns import check_columns
from rumq.spark.job_kit.grouped_state import step_by_group, types
from rumq.spark.jobs.output import Output

State = tuple[int, float, float]  # number of values, their mean, sum of squared deviations


def anomaly(
    df: DataFrame,
    value: str,
    by: Sequence[str] = ("topic",),
    time: str = "ts",
    k: float = 4.0,
    least: int = 30,
) -> DataFrame:
    """Each row: by, time, value, and its deviation from earlier values: mean, sd, z, far (|z| > k).

    least: number of values before any is far. Null and NaN are dropped. If all earlier values are equal, z is null
    and a different one is far. sd: of the sample
    """
    check_columns(df, value, time, *by)
    columns = [*by, time, *(["lsn"] if "lsn" in df.columns else []), value]
    rows = df.select(*dict.fromkeys(columns)).withColumn(value, df[value].cast("double"))
    order = [name for name in (time, "lsn") if name in rows.columns]

    def step(state: tuple[int, float, float], frame: pd.DataFrame) -> tuple[State, pd.DataFrame]:
        frame = frame[frame[value].notna()]
        n, mean, squares = state
        scores = []
        for x in frame[value].tolist():
            sd = math.sqrt(squares / (n - 1)) if n > 1 else 0.0
            z = (x - mean) / sd if sd else None
            far = n >= least and (abs(z) > k if z is not None else x != mean)
            scores.append((mean if n else None, sd if n > 1 else None, z, far))
            n += 1
            apart = x - mean
            mean += apart / n
            squares += apart * (x - mean)
        scored = pd.DataFrame(scores, columns=["mean", "sd", "z", "far"], index=frame.index)
        return (n, mean, squares), pd.concat([frame[[*by, time, value]], scored], axis=1)

    out = f"{types(rows, *by, time, value)}, mean double, sd double, z double, far boolean"
    return step_by_group(rows, by, order, step, begin=(0, 0.0, 0.0), state="n bigint, mean double, m2 double", out=out)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--value", required=True, metavar="COLUMN")
    parser.add_argument("--by", action="append", metavar="COLUMN", help="repeatable [topic]")
    parser.add_argument("--time", default="ts", metavar="COLUMN", help="[ts, when the broker received it]")
    parser.add_argument("--k", type=float, default=4.0, help="standard deviations that are far [4]")
    parser.add_argument("--least", type=int, default=30, metavar="N", help="values before any is far [30]")


def columns(args: Namespace) -> list[str]:
    """Those that must be there."""
    return [args.value, *(args.by or ["topic"]), args.time]


def outputs(df: DataFrame, args: Namespace) -> list[Output]:
    by = args.by or ["topic"]
    found = anomaly(df, args.value, by, args.time, args.k, args.least).where("far").drop("far")
    return [Output(found, topic="anomaly/" + "/".join(f"{{{name}}}" for name in by))]
