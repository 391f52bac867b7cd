"""The structure of the product: no import circles, files and folders that can be read at a glance, short constructors.

No module imports itself by way of others. Imports inside functions and under TYPE_CHECKING count:
a reader has to hold all files of a circle at once, whenever Python loads them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_floors import imports

ROOT = Path(__file__).parents[1]
PRODUCT = ("commitlog", "router", "rumq", "pyspark_rumq")


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def graph_of(sources: dict[str, str]) -> dict[str, set[str]]:
    """Module -> modules it imports. sources: module -> its text"""
    graph = {}
    for module, text in sources.items():
        named = {name if name in sources else name.rpartition(".")[0] for name in imports(text, module)}
        graph[module] = (named & sources.keys()) - {module}
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
            if other in stack:
                low[module] = min(low[module], low[other])
        if low[module] == index[module]:
            component = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(component) > 1:
                found.append(sorted(component))

    for module in graph:
        if module not in index:
            visit(module)
    return found


def product_files() -> Iterator[Path]:
    for top in PRODUCT:
        yield from sorted((ROOT / top).rglob("*.py"))


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(graph_of({module_of(path): path.read_text() for path in product_files()})) == []


@pytest.mark.parametrize(
    "back",
    [
        "from a.one import f",
        "def g():\n    from a.one import f",  # hidden in a function
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import one",  # hidden from Python
    ],
)
def test_a_circle_is_seen(back: str) -> None:
    sources = {"a.one": "import a.two", "a.two": "from a.three import h", "a.three": back}
    assert circles(graph_of(sources)) == [["a.one", "a.three", "a.two"]]


def test_no_module_is_longer_than_one_job() -> None:
    """A file over 400 lines (a kernel: 600) has become the centre that everything grows into: split it by noun."""
    lines = {path: len(path.read_text().splitlines()) for path in product_files()}
    allowed = {path: 600 if path.parent.name == "kernels" else 400 for path in lines}
    assert {str(path.relative_to(ROOT)): n for path, n in lines.items() if n > allowed[path]} == {}


@pytest.mark.parametrize("floor", ["rumq/shards", "rumq/session", "rumq/spark", "rumq/cli"])
def test_a_folder_can_be_read_at_a_glance(floor: str) -> None:
    folders = {path.parent for path in (ROOT / floor).rglob("*.py")}
    sizes = {folder: len([p for p in folder.glob("*.py") if p.name != "__init__.py"]) for folder in folders}
    assert {str(folder.relative_to(ROOT)): n for folder, n in sizes.items() if n > 12} == {}


def test_no_constructor_takes_more_than_it_can_explain() -> None:
    """More than eight parameters: some belong together, or the class has more than one job. Plain data is exempt."""
    long = {}
    for path in product_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                for part in node.body:
                    if isinstance(part, ast.FunctionDef) and part.name == "__init__":
                        count = len(part.args.args) - 1 + len(part.args.kwonlyargs)
                        if count > 8:
                            long[f"{path.relative_to(ROOT)}: {node.name}"] = count
    assert long == {}
