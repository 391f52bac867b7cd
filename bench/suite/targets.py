"""What rumq is to reach (`bench/suite/targets.toml`) against what a series measured."""

import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

FILE = Path(__file__).with_name("targets.toml")

# (scenario, peer, figure) -> the median, NaN where there is none
Median = Callable[[str, str, str], float]


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """of: the peer a ratio is against; empty: the figure itself is bounded. Exactly one bound is given.

    of_scenario: a ratio against the same broker in another scenario
    """

    scenario: str
    figure: str
    of: str = ""
    of_scenario: str = ""
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError(f"{self.scenario}, {self.figure}: expected at_least or at_most, one of the two")

    def asks(self) -> str:
        bound = f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"
        against = self.of or self.of_scenario
        return f"{bound} x {against}" if against else bound


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """value: the ratio, or the figure where the target is absolute; None when it was not measured."""

    target: Target
    value: float | None
    verdict: Literal["met", "missed", "not measured"]


def load(path: Path = FILE) -> list[Target]:
    """raises: msgspec.ValidationError, which names the key"""
    tables = tomllib.loads(path.read_text())["target"]
    return msgspec.convert(tables, list[Target], strict=False)


def judge(target: Target, median: Median, subject: str = "rumq") -> Judged:
    value = median(target.scenario, subject, target.figure)
    if target.of or target.of_scenario:
        base = median(target.of_scenario or target.scenario, target.of or subject, target.figure)
        value = value / base if base else math.nan
    if math.isnan(value):
        return Judged(target=target, value=None, verdict="not measured")
    met = value >= target.at_least if target.at_least is not None else value <= (target.at_most or 0)
    return Judged(target=target, value=value, verdict="met" if met else "missed")
