"""A report says each figure with its spread, what failed and why, what is kept, and how it was measured."""

import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from bench.compare import command
from bench.compare.charts import Bar, draw
from bench.compare.document import Chart, Facts, document
from bench.compare.kept import Kept
from bench.compare.rendering import html_page, markdown
from bench.suite.scenarios import SCENARIOS
from bench.suite.series import Series

SCENARIO = SCENARIOS["one-to-one-qos0"]
FACTS = Facts(
    "python -m bench compare",
    {"cores": 2},
    {"rumq": "rumqd 1", "nats": "not installed"},
    {"rumq": "rumqd run <x>"},
    2.0,
    3,
)
KEPT = [
    Kept("rumq", "disk", 10_000, 0, 3, 0.5),
    Kept("other", "memory", 9_000, 8_999, 0, 0.1),
    Kept("gone", why_not="it says | no"),
]


def made() -> Series:
    series = Series([SCENARIO], ["rumq", "other"])
    series.cell(SCENARIO.key, "rumq").runs = [{"delivered_per_s": each, "lost": 0.0} for each in (4e6, 5e6, 9e6)]
    series.cell(SCENARIO.key, "other").runs = [{"delivered_per_s": 250_000.0, "lost": 7.0}]
    return series


def test_both_forms_say_all_of_it() -> None:
    parts = document(made(), KEPT, FACTS)
    for text in (markdown(parts), html_page(parts)):
        for words in (
            "5,000,000 ±50%",
            "20.00x",
            "lost: 7 in the worst run",
            "8,999",
            "rumqd 1",
            "not installed",
            "python -m bench compare",
        ):
            assert words in text, words
    assert "it says \\| no" in markdown(parts)
    assert "rumqd run &lt;x&gt;" in html_page(parts) and "<x>" not in html_page(parts)


def test_a_broker_without_a_run_is_no_bar() -> None:
    series = made()
    series.cell(SCENARIO.key, "other").runs.clear()
    series.cell(SCENARIO.key, "other").faults.append("it ended")
    parts = document(series, [], FACTS)
    (chart,) = (part for part in parts if isinstance(part, Chart))
    assert chart.svg.count("<rect") == 1 and "failed: it ended" in markdown(parts)


def test_bars_are_to_scale_and_whiskers_span_the_runs() -> None:
    root = xml.fromstring(
        draw("a <title>", "msg/s", [Bar("a", 50.0, 40.0, 100.0, "50"), Bar("b", 25.0, 25.0, 25.0, "25")])
    )
    space = "{http://www.w3.org/2000/svg}"
    first, second = (float(each.attrib["width"]) for each in root.iter(f"{space}rect"))
    assert first == pytest.approx(2 * second) and len(list(root.iter(f"{space}path"))) == 1


def test_the_report_is_written_with_its_charts(tmp_path: Path) -> None:
    command.write(tmp_path, document(made(), KEPT, FACTS))
    assert (tmp_path / "charts" / f"{SCENARIO.key}.svg").exists() and (tmp_path / "report.md").exists()
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("arguments", [["--peers", "rumq,no-such"], ["--scenario", "no-such"]])
def test_what_is_not_known_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(arguments) == command.REFUSED and "no-such" in capsys.readouterr().err
