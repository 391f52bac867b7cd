"""Areas on the earth. Without Spark."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rumq.spark.job_kit.geofences import Fence, distance_m, read_fences
from rumq.table.errors import BadOption

# Borders of two states that are parallels and meridians, of Wyoming and of Colorado.
STATES = {"WY": (-111.056, 40.998, -104.052, 45.006), "CO": (-109.06, 36.992, -102.041, 41.003)}


def feature(name: str, kind: str, coordinates: Any, **more: Any) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "geometry": geometry, "properties": {"name": name, **more}}


def box(west: float, south: float, east: float, north: float) -> list[list[list[float]]]:
    return [[[west, south], [east, south], [east, north], [west, north], [west, south]]]


def write(path: Path, *features: dict[str, Any]) -> str:
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return str(path)


def test_airports_are_in_their_states(tmp_path: Path) -> None:
    vega_datasets = pytest.importorskip("vega_datasets", reason="vega_datasets is not installed")
    airports = vega_datasets.local_data.airports()
    made = write(tmp_path / "states.json", *(feature(name, "Polygon", box(*b)) for name, b in STATES.items()))
    lon, lat = airports["longitude"].to_numpy(float), airports["latitude"].to_numpy(float)
    for fence in read_fences(made):
        inside = set(airports["iata"][fence.holds(lon, lat)])
        of_state = set(airports["iata"][airports["state"] == fence.name])
        assert len(of_state) > 30 and inside == of_state


def test_a_radius_is_of_metres_on_the_ground() -> None:
    """Seattle to San Francisco: 1093 km; a degree of longitude is half as long at 60° as at the equator."""
    assert distance_m(np.array([-122.3088]), np.array([47.4502]), -122.375, 37.619)[0] == pytest.approx(
        1_093_200, rel=2e-3
    )
    assert distance_m(np.array([1.0]), np.array([0.0]), 0.0, 0.0)[0] == pytest.approx(111_195, rel=1e-4)
    assert distance_m(np.array([1.0]), np.array([60.0]), 0.0, 60.0)[0] == pytest.approx(55_597, rel=1e-3)
    near = Fence("yard", (), (179.999, 0.0), 300.0)
    assert near.holds(np.array([-179.999, 179.0]), np.array([0.0, 0.0])).tolist() == [True, False]


def test_a_polygon_has_holes_and_need_not_be_convex() -> None:
    star = tuple((math.sin(n * math.pi / 5) * r, math.cos(n * math.pi / 5) * r) for n, r in enumerate([2.0, 0.8] * 5))
    fence = Fence("star", (star, ((-0.2, -0.2), (0.2, -0.2), (0.2, 0.2), (-0.2, 0.2))))
    x, y = np.array([0.0, 0.0, 0.5, 1.2, 0.0]), np.array([1.5, 0.0, 0.0, 1.2, -1.5])
    assert fence.holds(x, y).tolist() == [True, False, True, False, False]


@pytest.mark.parametrize(
    "features",
    [
        [], [feature("a", "LineString", [[0, 0], [1, 1]])], [feature("a", "Point", [0, 0])],
        [feature("a", "Point", [0, 0], radius_m=0)], [feature("a", "Polygon", [[[0, 0], [1, 1]]])],
        [feature("a", "Polygon", box(0, 0, 1, 1)), feature("a", "Polygon", box(2, 2, 3, 3))],
        [{"geometry": {"type": "Point", "coordinates": [0, 0]}, "properties": {"radius_m": 5}}],
    ],
)  # fmt: skip
def test_what_is_no_fence_is_refused(tmp_path: Path, features: list[dict[str, Any]]) -> None:
    made = write(tmp_path / "fences.json", *features)
    with pytest.raises(BadOption, match="GeoJSON features, each with"):
        read_fences(made)
    with pytest.raises(BadOption, match="No such file"):
        read_fences(made + "x")
