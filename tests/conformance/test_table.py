"""docs/reference/mqtt-conformance.md has a row for every numbered statement, and names only tests that are there.

Source of the numbers: appendix B of MQTT 5.0 and of MQTT 3.1.1."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "reference" / "mqtt-conformance.md"
# Section: its last statement. Each begins with 1, but for 2.2.1 of MQTT 5.0, which has no first.
LAST = {
    "MQTT 5.0": """
    1.5.4:3 1.5.5:1 1.5.7:1 2.1.3:1 2.2.1:6 2.2.2:1 3.1.0:2 3.1.2:30 3.1.3:12 3.1.4:6 3.2.0:2 3.2.2:22
    3.3.1:13 3.3.2:20 3.3.4:10 3.4.2:3 3.5.2:3 3.6.1:1 3.6.2:3 3.7.2:3 3.8.1:1 3.8.3:5 3.8.4:8 3.9.2:2
    3.9.3:2 3.10.1:1 3.10.3:2 3.10.4:6 3.11.2:2 3.11.3:2 3.12.4:1 3.14.0:1 3.14.1:1 3.14.2:4 3.14.4:3
    3.15.1:1 3.15.2:3 4.1.0:2 4.2.0:1 4.3.1:1 4.3.2:5 4.3.3:13 4.4.0:2 4.5.0:2 4.6.0:6 4.7.0:1 4.7.1:2
    4.7.2:1 4.7.3:4 4.8.2:6 4.9.0:3 4.12.0:7 4.12.1:2 4.13.1:1 4.13.2:1 6.0.0:4
    """,
    "MQTT 3.1.1": """
    1.5.3:3 2.2.2:2 2.3.1:7 3.1.0:2 3.1.2:24 3.1.3:11 3.1.4:5 3.2.0:1 3.2.2:6 3.3.1:12 3.3.2:3 3.3.4:1
    3.3.5:2 3.6.1:1 3.8.1:1 3.8.3:4 3.8.4:6 3.9.3:2 3.10.1:1 3.10.3:2 3.10.4:6 3.12.4:1 3.14.1:1
    3.14.4:3 4.1.0:2 4.3.1:1 4.3.2:2 4.3.3:2 4.4.0:1 4.5.0:2 4.6.0:6 4.7.1:3 4.7.2:1 4.7.3:4 4.8.0:2
    6.0.0:4 7.0.0:2 7.1.1:1 7.1.2:1
    """,
}


def statements(version: str) -> list[str]:
    sections = [item.split(":") for item in LAST[version].split()]
    first = {("MQTT 5.0", "2.2.1"): 2}
    return [
        f"MQTT-{section}-{number}"
        for section, last in sections
        for number in range(first.get((version, section), 1), int(last) + 1)
    ]


TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows(version: str) -> list[list[str]]:
    """The cells of each row under the heading of `version`."""
    part = TABLE.read_text().partition(f"## {version}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| MQTT-")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@cache
def functions(path: Path) -> set[str]:
    """Every test in a file, whether in a class or not."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_lists_are_as_long_as_the_appendices() -> None:
    assert [len(statements(version)) for version in LAST] == [251, 141]


@pytest.mark.parametrize("version", LAST)
def test_every_statement_has_one_row_in_the_standard_s_order(version: str) -> None:
    assert [cells[0] for cells in rows(version)] == statements(version)


@pytest.mark.parametrize("version", LAST)
def test_every_row_says_what_it_binds_and_what_covers_it(version: str) -> None:
    for statement, says, binds, covered in rows(version):
        assert says, statement
        assert binds in ("server", "client", "both", "sender", "receiver"), statement
        assert TEST.search(covered) or re.match(r"client: [\w`]|not applicable because \w", covered), statement
        assert binds == "client" or not covered.startswith("client:"), statement


@pytest.mark.parametrize("version", LAST)
def test_every_test_that_is_named_is_there(version: str) -> None:
    for statement, _, _, covered in rows(version):
        for file, function in TEST.findall(covered):
            assert (ROOT / file).is_file(), f"{statement}: no {file}"
            assert function in functions(ROOT / file), f"{statement}: no {function} in {file}"
