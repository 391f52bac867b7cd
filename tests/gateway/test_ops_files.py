"""Dashboards and alerts: expressions parse as PromQL and name metrics that exist; each alert says what to do."""

import json
import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from rumq.gateway.metrics import metric_table as t

OPS = Path(__file__).parents[2] / "ops"
SERIES = {metric.name for metric in t.TABLE} | {f"{metric.name}_bucket" for metric in t.HISTOGRAMS}
LABELS = {"shard", "instance", "le", *(label for metric in t.TABLE for label in metric.labels)}
DASHBOARDS = sorted((OPS / "grafana").glob("*.json"))


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((OPS / "prometheus/alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def named(expression: str) -> set[str]:
    return set(re.findall(r"\brumq_\w+", expression))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_names_metrics_that_exist_and_says_what_to_do(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert named(rule["expr"]) and named(rule["expr"]) <= SERIES
    assert re.fullmatch(r"\d+[smh]", rule["for"]) and rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "action"} and len(rule["annotations"]["action"]) > 40
    assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= LABELS
    promql_parser.parse(rule["expr"])


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_plots_metrics_that_exist(path: Path) -> None:
    board = json.loads(path.read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(expressions) > 10
    assert set().union(*map(named, expressions)) <= SERIES
    for each in expressions:
        promql_parser.parse(each.replace("$__rate_interval", "5m"))
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    used = set(re.findall(r"\{\{(\w+)\}\}", path.read_text()))
    assert used <= LABELS


def test_every_histogram_is_plotted_and_what_makes_the_broker_useless_is_an_alert() -> None:
    plotted = named(" ".join(path.read_text() for path in DASHBOARDS))
    assert {f"{metric.name}_bucket" for metric in t.HISTOGRAMS} <= plotted
    alerted = named(" ".join(rule["expr"] for rule in rules()))
    assert {"rumq_up", "rumq_accepting", "rumq_partition_offline"} <= alerted
