"""The test of a module is named after it: `rumq/session/state/wills.py`, `tests/session/state/test_wills.py`.

A module without one does nothing: Protocols, plain records, constants. None of its functions has a body."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("rumq/session", "rumq/shards", "rumq/cluster/node", "rumq/cli/node")


def behaves(text: str) -> bool:
    """Whether a module has a function that does something. The functions of a Protocol are a docstring or `...`."""
    functions = (
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return any(not is_empty(statement) for each in functions for statement in each.body)


def is_empty(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def modules(floor: str) -> Iterator[str]:
    """Those of a floor that do something, as paths from the root."""
    for path in sorted((ROOT / floor).rglob("*.py")):
        if behaves(path.read_text()):
            yield path.relative_to(ROOT).as_posix()


def mirror_of(module: str) -> Path:
    path = Path(module)
    return ROOT / "tests" / path.relative_to("rumq").with_name(f"test_{path.name}")


@pytest.mark.parametrize("floor", FLOORS)
def test_a_module_that_does_something_has_a_test_of_its_name(floor: str) -> None:
    assert [module for module in modules(floor) if not mirror_of(module).exists()] == []


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("LIMIT = 4", False),
        ("class Clock(Protocol):\n    def now(self) -> float:\n        '''Seconds.'''", False),
        ("class Clock(Protocol):\n    async def wait(self) -> None: ...", False),
        ("class Place(NamedTuple):\n    lsn: int = 0", False),
        ("def nothing() -> None:\n    pass", False),
        ("def f():\n    return 1", True),
        ("class Log:\n    def size(self):\n        '''Bytes.'''\n        return 0", True),
        ("async def f():\n    await g()", True),
    ],
)
def test_protocols_records_and_constants_do_nothing(text: str, does: bool) -> None:
    assert behaves(text) is does
