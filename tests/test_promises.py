"""docs/explanation/promises.md names only tests, files and documents that are there."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "explanation" / "promises.md"
SYSTEMS = {"CAS": 20, "GOR": 15, "GEO": 20, "RQD": 19, "RMM": 17}  # the last id of each
IDS = [
    *(f"{system}-{n}" for system, last in SYSTEMS.items() for n in range(1, last + 1)),
    *(f"3.{n}" for n in range(1, 19)),
]
NAMED = re.compile(r"`((?:tests|docs|rumq|router|commitlog|bench|examples)/[\w./-]*?)(?:::(\w+))?`")


def rows() -> list[tuple[str, str, str]]:
    lines = [line for line in TABLE.read_text().splitlines() if re.match(r"\| ([A-Z]+-\d|3\.\d)", line)]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]  # type: ignore[misc]


def test_each_promise_has_one_row_and_says_what_shows_it() -> None:
    found = rows()
    assert sorted(promise for promise, _, _ in found) == sorted(IDS)
    for promise, says, shown in found:
        assert says and (NAMED.search(shown) or shown.startswith(("as ", "none: "))), promise


def test_a_promise_that_is_not_kept_is_said_to_be_so_and_is_not_shown_by_a_test() -> None:
    for promise, says, shown in rows():
        assert says.startswith("**not kept**") == shown.startswith("none: "), promise


def test_the_page_counts_its_rows() -> None:
    kinds = Counter(re.match(r"(\*\*[a-z ]+\*\*)?", says)[0] for _, says, _ in rows())  # type: ignore[index]
    counted = re.search(r"(\d+) are kept, (\d+) in part, (\d+) not\.", TABLE.read_text())
    assert counted is not None
    assert [int(each) for each in counted.groups()] == [
        kinds[""], kinds["**in part**"], kinds["**not kept**"],
    ]  # fmt: skip


def test_what_is_named_is_there() -> None:
    for promise, _, shown in rows():
        for path, function in NAMED.findall(shown):
            assert (ROOT / path).exists(), f"{promise}: no {path}"
            if function:
                nodes = ast.walk(ast.parse((ROOT / path).read_text()))
                names = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
                assert function in names, f"{promise}: no {function} in {path}"
