"""Areas on the earth, and tests whether they contain points. GeoJSON, RFC 7946: degrees, longitude first."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rumq.table.errors import BadOption

Floats = npt.NDArray[np.float64]
EARTH_RADIUS_M = 6_371_008.8  # mean radius, IUGG
ALLOWED = "GeoJSON features, each with properties.name and a Polygon, or a Point with properties.radius_m"


@dataclass(frozen=True)
class Fence:
    """rings: of (longitude, latitude), the first the outer one; or a centre and a radius in metres."""

    name: str
    rings: tuple[tuple[tuple[float, float], ...], ...] = ()
    centre: tuple[float, float] = (0.0, 0.0)
    radius_m: float = 0.0

    def holds(self, longitudes: Floats, latitudes: Floats) -> npt.NDArray[np.bool_]:
        """Arrays of degrees -> array of bool. A polygon's edges are straight on the map and none crosses 180°."""
        if not self.rings:
            return distance_m(longitudes, latitudes, *self.centre) <= self.radius_m
        inside = np.zeros(len(longitudes), bool)
        for ring in self.rings:
            for (x1, y1), (x2, y2) in zip(ring, (*ring[1:], ring[0]), strict=True):
                if y1 == y2:
                    continue
                crosses = (y1 > latitudes) != (y2 > latitudes)
                inside ^= crosses & (longitudes < (x2 - x1) * (latitudes - y1) / (y2 - y1) + x1)
        return inside


def distance_m(longitudes: Floats, latitudes: Floats, longitude: float, latitude: float) -> Floats:
    """Along a great circle of a sphere, by the haversine formula."""
    lon, lat, lon0, lat0 = (np.radians(angle) for angle in (longitudes, latitudes, longitude, latitude))
    part = np.sin((lat - lat0) / 2) ** 2 + np.cos(lat) * np.cos(lat0) * np.sin((lon - lon0) / 2) ** 2
    metres: Floats = 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.clip(part, 0, 1)))
    return metres


def read_fences(path: str) -> list[Fence]:
    """raises: BadOption"""
    try:
        found = [fence_of(feature) for feature in json.loads(Path(path).read_text())["features"]]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as fault:
        raise BadOption("fences", path, f"a file of {ALLOWED} ({fault!r})") from None
    if not found or len({fence.name for fence in found}) < len(found):
        raise BadOption("fences", path, f"a file of {ALLOWED}, one at least, each with a name of its own")
    return found


def fence_of(feature: Any) -> Fence:
    """raises: ValueError, KeyError, TypeError, IndexError"""
    shape, properties = feature["geometry"], feature["properties"]
    if shape["type"] == "Point":
        longitude, latitude = shape["coordinates"][:2]
        radius_m = float(properties["radius_m"])
        if radius_m <= 0:
            raise ValueError("radius_m is not positive")
        return Fence(str(properties["name"]), (), (float(longitude), float(latitude)), radius_m)
    if shape["type"] != "Polygon":
        raise ValueError(f"a {shape['type']}")
    rings = tuple(tuple((float(p[0]), float(p[1])) for p in ring) for ring in shape["coordinates"])
    if not rings or any(len(ring) < 3 for ring in rings):
        raise ValueError("a ring of less than three points")
    return Fence(str(properties["name"]), rings)
