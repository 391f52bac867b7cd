"""docs/promises.md names only tests, files and documents that are there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs" / "promises.md"
NAMED = re.compile(r"`((?:tests|docs|rumq|router|commitlog|bench|examples)/[\w./-]*?)(?:::(\w+))?`")


def rows() -> list[tuple[str, str, str]]:
    lines = [line for line in TABLE.read_text().splitlines() if re.match(r"\| ([A-Z]+-\d|3\.\d)", line)]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]  # type: ignore[misc]


def test_each_promise_has_one_row_and_says_what_shows_it() -> None:
    found = rows()
    assert len(found) > 30 and len({promise for promise, _, _ in found}) == len(found)
    for promise, says, shown in found:
        assert says and (NAMED.search(shown) or shown.startswith(("as ", "open"))), promise


def test_what_is_named_is_there() -> None:
    for promise, _, shown in rows():
        for path, function in NAMED.findall(shown):
            assert (ROOT / path).exists(), f"{promise}: no {path}"
            if function:
                nodes = ast.walk(ast.parse((ROOT / path).read_text()))
                names = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
                assert function in names, f"{promise}: no {function} in {path}"
