"""Isolation: what the others measured becomes figures, a table and a picture."""

import json
import math
import xml.etree.ElementTree as ET
import zlib
from array import array
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.isolation.brokers import RumqBeside, build_shim, names_of
from bench.isolation.command import LOAD, scenario_of
from bench.isolation.lives import BIN_S, Messages, Timeline, Times, figures_of, timeline_of
from bench.isolation.neighbours import NEIGHBOURS
from bench.isolation.picture import Panel, draw
from bench.isolation.table import table
from bench.isolation.task import Lived
from bench.suite.series import Series
from bench.suite.targets import load

SECOND = 10**9


def lived(latencies_us: dict[int, list[int]], qos: int = 0) -> Lived:
    """Messages by the second they were sent in, each seen 1 ms after it was at the socket."""
    sent = [second * SECOND + place for second, some in latencies_us.items() for place in range(len(some))]
    took = [1000 * us for some in latencies_us.values() for us in some]
    return Lived(
        began_ns=0, sent_ns=array("Q", sent).tobytes(), socket_ns=array("Q", took).tobytes(),
        seen_ns=array("Q", [ns + 1_000_000 for ns in took]).tobytes(), qos=bytes([qos] * len(sent)), sent=len(sent),
        lost=0, twice_or_out_of_order=0, unacknowledged=0, disconnected=0, late_ns_max=0, cpu_s=0.0,
    )  # fmt: skip


TIMES = Times(began_ns=SECOND, neighbour_ns=2 * SECOND, quiet_ns=3 * SECOND, ended_ns=4 * SECOND)


def test_messages_belong_to_the_phase_they_were_sent_in() -> None:
    some = {0: [9000], 1: [100, 100, 200], 2: [100, 100, 600], 3: [100, 100, 300], 4: [9000]}
    figures = figures_of(Messages(lived(some)), TIMES)
    assert [figures[f"{phase}_messages"] for phase in ("before", "during", "after")] == [3, 3, 3]
    assert (figures["before_p50_us"], figures["before_p99_us"], figures["before_max_us"]) == (100, 200, 200)
    assert (figures["ratio_p50"], figures["ratio_p99"], figures["ratio_after_p99"]) == (1, 3, 1.5)
    assert figures["during_seen_p99_us"] == 1600
    assert figures["ratio_qos0_p99"] == 3 and math.isnan(figures["ratio_qos1_p99"])


def test_the_order_in_which_messages_came_does_not_matter() -> None:
    some = {3: [100], 1: [200], 2: [600]}
    figures = figures_of(Messages(lived(some)), TIMES)
    assert [figures[f"{phase}_max_us"] for phase in ("before", "during", "after")] == [200, 600, 100]


def test_a_timeline_has_a_gap_where_nothing_was_sent() -> None:
    timeline = timeline_of(Messages(lived({1: [100, 300], 3: [500]})), TIMES)
    assert len(timeline.p99_us) == round(3 / BIN_S)
    assert (timeline.p99_us[0], timeline.p99_us[1], timeline.max_us[8]) == (300, None, 500)
    assert (timeline.begin_s, timeline.end_s) == (1, 2)


def test_the_picture_has_a_panel_and_a_shade_for_each_neighbour() -> None:
    one = Timeline(begin_s=1, end_s=2, p50_us=[100, None, 90, 80], p99_us=[300, None, 9000, 200], max_us=[1] * 4)
    root = ET.fromstring(draw([Panel("a & b", {"rumq": one, "mosquitto": one}), Panel("c", {"rumq": one})]))
    groups = [part for part in root if part.tag.endswith("}g")]
    assert [group[0].text for group in groups] == ["a & b", "c"]
    lines = [part.get("class") for part in groups[0].iter() if "line" in (part.get("class") or "")]
    assert lines == ["line peer", "line p50", "line p99"]
    p99 = next(part.get("d") or "" for part in groups[0].iter() if part.get("class") == "line p99")
    assert p99.count("M") == 2, "the line breaks where nothing was sent"
    assert all(any(part.get("class") == "harm" for part in group) for group in groups)


def test_the_table_says_what_was_lost_and_what_failed() -> None:
    neighbours = [NEIGHBOURS["never-reads"], NEIGHBOURS["connects"]]
    series = Series([scenario_of(one) for one in neighbours], ["rumq"])
    run = figures_of(Messages(lived({1: [100], 2: [400], 3: [100]})), TIMES)
    series.cell("isolation-never-reads", "rumq").runs.append(run | {"lost": 7, "disconnected": 0, "unacknowledged": 2})
    series.cell("isolation-connects", "rumq").faults.append("it fell over")
    lines = table(series).splitlines()
    row = next(line for line in lines if line.startswith("a subscriber that never reads"))
    assert row.split()[-4:] == ["4.00x", "4.00x", "7", "0"]
    assert "! a subscriber that never reads, rumq: unacknowledged: 2 in the worst run" in lines
    assert "! 1,000 connects a second, rumq: failed: it fell over" in lines


def test_every_neighbour_has_its_targets() -> None:
    asked = {(target.scenario, target.figure) for target in load()}
    assert all((one.scenario, "ratio_p99") in asked for one in NEIGHBOURS.values())


def test_names_lead_to_the_last_shard() -> None:
    names = names_of("other-", 20, 3)
    assert len(set(names)) == 20
    assert {zlib.crc32(name.encode()) % 3 for name in names} == {2}


def test_a_slow_disk_is_the_one_of_its_stream_only(tmp_path: Path) -> None:
    beside = RumqBeside(NEIGHBOURS["slow-disk"], "process", build_shim(tmp_path), tmp_path / "now")
    words = beside.command(LOAD, tmp_path, 1883)
    assert f"BENCH_SLOW_FOLDER={tmp_path}/data/slow/" in words
    assert "log.durability=disk" in words
    assert 'filters = ["slow/#"]' in (tmp_path / "config.toml").read_text()


def test_an_unknown_neighbour_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["isolation", "--neighbour", "noisy"])
    assert "never-reads" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("key", NEIGHBOURS)
def test_nobody_loses_anything_to_a_neighbour(key: str, tmp_path: Path) -> None:
    """Against a real broker, a short time each; how slow it gets is for a quiet machine to say."""
    out = ["--json", str(tmp_path / "out.json"), "--picture", str(tmp_path / "out.svg")]
    assert main(["isolation", "--quick", "--neighbour", key, "--log-gib", "0.1", *out]) == 0
    (cell,) = json.loads((tmp_path / "out.json").read_bytes())["results"]
    (run,) = cell["runs"]
    assert (run["lost"], run["disconnected"], run["unacknowledged"], run["out_of_order_or_twice"]) == (
        0,
        0,
        0,
        0,
    )
    ET.parse(tmp_path / "out.svg")
