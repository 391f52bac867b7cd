"""What a peer does better is shown first, the worst of it at the top."""

from bench.suite.report import table
from bench.suite.scenarios import SCENARIOS
from bench.suite.series import Series
from bench.suite.standing import Rows, behind_and_ahead

FLOOD, PAIRS = SCENARIOS["one-to-one-qos0"], SCENARIOS["pairs-500"]


def series(**pairs: tuple[float, float, float]) -> Series:
    """`pairs`: figures of pairs-500 for rumq, mosquitto, nats. rumq is ahead in every figure of the flood."""
    made = Series([FLOOD, PAIRS], ["rumq", "mosquitto", "nats"])
    for place, peer in enumerate(made.peers):
        behind = bool(place)
        flood = {"delivered_per_s": 1e6 / (1 + behind), "lost": 0.0, "cpu_us_per_delivery": 1.0 + behind}
        made.cell(FLOOD.key, peer).runs = [flood]
        made.cell(PAIRS.key, peer).runs = [{figure: values[place] for figure, values in pairs.items()}]
    return made


def test_figures_that_a_peer_leads_come_first_the_furthest_behind_at_the_top() -> None:
    made = series(cpu_us_per_delivery=(30, 10, 60), latency_p50_us=(40, 80, 5), latency_p99_us=(1, 2, 3))
    behind, rest = behind_and_ahead(made)
    assert behind == [Rows(PAIRS, ("latency_p50_us", "cpu_us_per_delivery"))]
    assert [rows.scenario for rows in rest] == [FLOOD, PAIRS]
    assert "latency_p99_us" in rest[1].figures and "latency_p50_us" not in rest[1].figures


def test_scenarios_are_ordered_by_the_figure_that_is_furthest_behind() -> None:
    made = series(cpu_us_per_delivery=(30, 10, 60))
    made.cell(FLOOD.key, "nats").runs = [{"delivered_per_s": 4e6}]
    behind, _ = behind_and_ahead(made)
    assert [rows.scenario for rows in behind] == [FLOOD, PAIRS]
    made.cell(FLOOD.key, "nats").runs = [{"delivered_per_s": 2e6}]
    behind, _ = behind_and_ahead(made)
    assert [rows.scenario for rows in behind] == [PAIRS, FLOOD]


def test_a_rate_is_behind_when_it_is_lower_and_a_hair_is_level() -> None:
    assert behind_and_ahead(series(delivered_per_s=(4_990, 5_000, 5_000)))[0] == []
    assert behind_and_ahead(series(delivered_per_s=(4_000, 5_000, 5_000)))[0] != []
    assert behind_and_ahead(series(delivered_per_s=(6_000, 5_000, 5_000)))[0] == []


def test_what_says_how_it_was_measured_is_not_compared() -> None:
    assert behind_and_ahead(series(generator_late_p99_us=(9, 1, 1), lost=(9, 1, 1)))[0] == []


def test_the_table_has_both_parts_with_the_durability_of_each_broker() -> None:
    made = series(cpu_us_per_delivery=(30, 10, 60))
    for peer, words in (("rumq", "process"), ("mosquitto", "memory"), ("nats", "none")):
        made.cell(PAIRS.key, peer).durability = words
    lines = table(made).splitlines()
    assert lines[1:3] == ["A PEER IS AHEAD OF RUMQ", PAIRS.title]
    assert lines[3].split() == ["durability", "process", "memory", "none"]
    assert lines[4].split()[:2] == ["CPU", "µs/delivery"]
    assert lines.index("ALL OTHER FIGURES") < lines.index(FLOOD.title)


def test_a_table_in_which_nobody_is_ahead_has_one_part() -> None:
    assert "ALL OTHER FIGURES" not in table(series(cpu_us_per_delivery=(9, 10, 60)))
