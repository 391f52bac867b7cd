"""The chart and the table of docs/explanation/architecture.md show the folders that there are, and who imports whom."""

import itertools
import re
from collections.abc import Iterator

import pytest

from tests.docs.blocks import ROOT
from tests.house.product import TOPS, Graph, modules, top_of

PAGE = (ROOT / "docs/explanation/architecture.md").read_text()
NODE = re.compile(r'^ *(\w+)\["<b>([\w/]+)</b>', re.MULTILINE)
BESIDE = {"bench", "pyspark_rumq"}  # in the table alone: no folder of the product imports them


def drawn(page: str) -> Graph:
    """The first chart: folder -> folders that its arrows lead to. Raises KeyError for an arrow to what is not drawn."""
    chart = page.split("```mermaid", 1)[1].split("```", 1)[0]
    folders = dict(NODE.findall(chart))
    arrows: Graph = {folder: set() for folder in folders.values()}
    for line in chart.splitlines():
        steps = (
            [[folders[each.strip()] for each in step.split("&")] for step in line.split("-->")] if "-->" in line else []
        )
        for froms, tos in itertools.pairwise(steps):
            for each in froms:
                arrows[each].update(tos)
    return arrows


def listed(page: str) -> list[str]:
    """Folders of the first column of the table of folders."""
    table = page.split("| folder | job |", 1)[1].split("\n\n", 1)[0]
    return [folder for row in table.splitlines()[2:] for folder in re.findall(r"`([\w/]+)/`", row.split("|")[1])]


def reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def imported() -> Graph:
    tops = {
        here.replace(".", "/"): {other.replace(".", "/") for other in others}
        for here, others in top_of(modules()).items()
    }
    return {
        folder: tops.get(folder, set()) for folder in {*tops, *(each for others in tops.values() for each in others)}
    }


def faults(page: str) -> Iterator[str]:
    """What chart and table do not show as it is."""
    chart, product, table = drawn(page), imported(), listed(page)
    for folder in sorted(chart.keys() ^ product.keys()):
        yield f"{folder}: {'drawn, and not there' if folder in chart else 'not drawn'}"
    for folder in sorted({*table} ^ (product.keys() | BESIDE)):
        yield f"{folder}: {'in the table, and not there' if folder in table else 'not in the table'}"
    yield from (f"{folder}: in two rows of the table" for folder in sorted({*table}) if table.count(folder) > 1)
    for folder in sorted(chart.keys() & product.keys()):
        yield from (f"{folder} -> {other}: drawn, not imported" for other in sorted(chart[folder] - product[folder]))
        missing = product[folder] - reached(chart, folder)
        yield from (f"{folder} -> {other}: imported, and no path of arrows" for other in sorted(missing))


def test_the_chart_and_the_table_show_the_folders_and_imports_that_there_are() -> None:
    assert [*faults(PAGE)] == []


def test_every_package_of_the_product_is_a_folder_of_the_page() -> None:
    packages = {path.parent for top in TOPS for path in (ROOT / top).glob("*/__init__.py") if top == "rumq"}
    assert {str(each.relative_to(ROOT)) for each in packages} <= {*listed(PAGE)}


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('  terminal["<b>rumq/terminal</b><br/>amounts and progress"]\n', "", "KeyError"),
        ("| `rumq/terminal/` |", "| terminal |", "rumq/terminal: not in the table"),
        ("| `rumq/terminal/` |", "| `rumq/terminals/` |", "rumq/terminals: in the table, and not there"),
        ("| `rumq/terminal/` |", "| `rumq/terminal/`, `rumq/cli/` |", "rumq/cli: in two rows of the table"),
        ("  lake --> log\n", "", "rumq/lake -> commitlog: imported, and no path of arrows"),
        ("  lake --> log\n", "  lake --> log & auth\n", "rumq/lake -> rumq/auth: drawn, not imported"),
        ("<b>rumq/terminal</b>", "<b>rumq/terminals</b>", "rumq/terminal: not drawn"),
    ],
)
def test_a_page_that_is_not_so_is_seen(before: str, after: str, fault: str) -> None:
    assert before in PAGE
    try:
        found = [*faults(PAGE.replace(before, after, 1))]
    except KeyError:
        found = ["KeyError"]
    assert fault in found
