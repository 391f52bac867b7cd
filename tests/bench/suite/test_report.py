"""A series as a table: medians, ratios, and every fault said."""

import json
import math
from pathlib import Path

from bench.suite.report import filesystem, table, targets_table, write_json
from bench.suite.scenarios import SCENARIOS
from bench.suite.series import Series
from bench.suite.targets import Target, judge

SCENARIO = SCENARIOS["one-to-one-qos0"]


def run(delivered_per_s: float, **others: float) -> dict[str, float]:
    return {"delivered_per_s": delivered_per_s, "lost": 0, "cpu_us_per_delivery": 1.0} | others


def series() -> Series:
    made = Series([SCENARIO], ["rumq", "mosquitto", "nats"])
    made.cell(SCENARIO.key, "rumq").runs = [run(4e6), run(5e6), run(9e6)]
    made.cell(SCENARIO.key, "mosquitto").runs = [run(200_000), run(250_000, out_of_order_or_twice=3)]
    made.cell(SCENARIO.key, "nats").faults = ["nats does not accept\nTraceback\nthe reason"]
    return made


def test_the_table_shows_medians_ratios_and_what_failed() -> None:
    lines = table(series()).splitlines()
    row = next(line for line in lines if "delivered msg/s" in line)
    assert row.split()[2:] == ["5,000,000", "±50%", "225,000", "±11%", "failed", "22.22x", "-"]
    assert "! 1:1 QoS 0, mosquitto: out of order or twice: 3 in the worst run" in lines
    assert "! 1:1 QoS 0, nats: failed: nats does not accept ... the reason" in lines


def test_a_mount_is_found_for_every_folder(tmp_path: Path) -> None:
    assert filesystem("/proc/self") == "proc"
    assert filesystem(str(tmp_path)) not in ("", "proc")


def test_targets_are_listed_with_their_verdict() -> None:
    target = Target(scenario=SCENARIO.key, figure="delivered_per_s", of="mosquitto", at_least=20)
    assert targets_table([judge(target, series().median)]).split()[0] == "met"


def test_the_json_holds_every_run(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"
    made = series()
    made.cell(SCENARIO.key, "rumq").runs[0]["rss_bytes"] = math.nan
    write_json(path, made, [], {"runs": 3})
    report = json.loads(path.read_bytes())
    rumq = next(one for one in report["results"] if one["peer"] == "rumq")
    assert [one["delivered_per_s"] for one in rumq["runs"]] == [4e6, 5e6, 9e6]
    assert rumq["median"]["delivered_per_s"] == 5e6
    assert rumq["runs"][0]["rss_bytes"] is None
    assert report["machine"]["cores"] >= 1
