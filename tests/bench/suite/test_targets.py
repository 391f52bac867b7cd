"""The targets name scenarios and figures that exist, and are judged by their ratio."""

import math

import pytest

from bench.isolation.command import scenario_of
from bench.isolation.neighbours import NEIGHBOURS
from bench.peers import PEERS
from bench.suite import targets
from bench.suite.report import LABELS
from bench.suite.scenarios import SCENARIOS as TRAFFIC
from bench.suite.targets import Target, judge

SCENARIOS = TRAFFIC | {one.scenario: scenario_of(one) for one in NEIGHBOURS.values()}
MEDIANS = {("s", "rumq", "f"): 30.0, ("s", "nats", "f"): 10.0}


def median(scenario: str, peer: str, figure: str) -> float:
    return MEDIANS.get((scenario, peer, figure), math.nan)


def test_every_target_names_a_scenario_a_peer_and_a_figure_that_its_table_shows() -> None:
    for target in targets.load():
        assert target.figure in SCENARIOS[target.scenario].figures
        assert target.figure in LABELS
        assert target.of in {"", *PEERS}


def test_every_scenario_has_a_target() -> None:
    assert {target.scenario for target in targets.load()} == set(SCENARIOS)


@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        (Target(scenario="s", figure="f", of="nats", at_least=3), "met"),
        (Target(scenario="s", figure="f", of="nats", at_least=3.1), "missed"),
        (Target(scenario="s", figure="f", of="nats", at_most=3), "met"),
        (Target(scenario="s", figure="f", of="nats", at_most=2.9), "missed"),
        (Target(scenario="s", figure="f", at_most=30), "met"),
        (Target(scenario="s", figure="f", at_most=29), "missed"),
        (Target(scenario="s", figure="f", of="mosquitto", at_least=1), "not measured"),
        (Target(scenario="other", figure="f", at_least=1), "not measured"),
    ],
)
def test_a_bound_holds_at_the_bound_itself(target: Target, verdict: str) -> None:
    assert judge(target, median).verdict == verdict


def test_a_target_without_a_bound_or_with_two_is_refused() -> None:
    for bounds in ({}, {"at_least": 1.0, "at_most": 2.0}):
        with pytest.raises(ValueError, match="one of the two"):
            Target(scenario="s", figure="f", **bounds)
