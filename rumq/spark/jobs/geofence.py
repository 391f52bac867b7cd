"""A device's entries into and exits from areas.

rumqd spark run geofence --json 'lon double, lat double' --topics 'fleet/{truck}/position' --by truck \\
    --fences yards.geojson --to mqtt://localhost:1883"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

import pandas as pd
from pyspark.sql import DataFrame

from rumq.spark.job_kit.dataframe_columns import check_columns
from rumq.spark.job_kit.geofences import Fence, read_fences
from rumq.spark.job_kit.grouped_state import step_by_group, types
from rumq.spark.jobs.output import Output


def geofence(
    df: DataFrame,
    fences: Sequence[Fence],
    by: Sequence[str] = ("client_id",),
    time: str = "ts",
    lon: str = "lon",
    lat: str = "lat",
) -> DataFrame:
    """One row per change: by, time, fence, event (enter or leave), and the first position after it.

    A device whose first position is inside enters. Rows without a position are dropped. A stream keeps the fences of
    each device
    """
    check_columns(df, time, lon, lat, *by)
    columns = [*by, time, *(["lsn"] if "lsn" in df.columns else []), lon, lat]
    rows = df.select(*dict.fromkeys(columns)).dropna(subset=[lon, lat])

    def step(state: tuple[str], frame: pd.DataFrame) -> tuple[tuple[str], pd.DataFrame]:
        x, y = frame[lon].to_numpy(float), frame[lat].to_numpy(float)
        inside = {fence.name: fence.holds(x, y) for fence in fences}
        within, changes = set(json.loads(state[0])), []
        for n in range(len(frame)):
            for name, held in inside.items():
                if held[n] != (name in within):
                    within ^= {name}
                    changes.append((n, name, "enter" if held[n] else "leave"))
        positions = frame.iloc[[n for n, _, _ in changes]][[*by, time, lon, lat]].reset_index(drop=True)
        events = pd.DataFrame([change[1:] for change in changes], columns=["fence", "event"], dtype=object)
        return (json.dumps(sorted(within)),), pd.concat([positions, events], axis=1)

    order = [name for name in (time, "lsn") if name in rows.columns]
    # The state is one string: workers of Spark 4.3 cannot read the schema of a state with an array.
    out = f"{types(rows, *by, time, lon, lat)}, fence string, event string"
    return step_by_group(rows, by, order, step, begin=("[]",), state="fences string", out=out)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--fences", required=True, metavar="FILE", help="GeoJSON: polygons, points with radius_m")
    parser.add_argument("--by", action="append", metavar="COLUMN", help="repeatable [client_id]")
    parser.add_argument("--time", default="ts", metavar="COLUMN", help="[ts, when the broker received it]")
    parser.add_argument("--lon", default="lon", metavar="COLUMN", help="degrees [lon]")
    parser.add_argument("--lat", default="lat", metavar="COLUMN", help="degrees [lat]")


def check(args: Namespace) -> None:
    """raises: as `read_fences`"""
    read_fences(args.fences)


def columns(args: Namespace) -> list[str]:
    """Those that must be there."""
    return [*(args.by or ["client_id"]), args.time, args.lon, args.lat]


def outputs(df: DataFrame, args: Namespace) -> list[Output]:
    by = args.by or ["client_id"]
    found = geofence(df, read_fences(args.fences), by, args.time, args.lon, args.lat)
    return [Output(found, topic="geofence/" + "/".join(f"{{{name}}}" for name in (*by, "fence")))]
