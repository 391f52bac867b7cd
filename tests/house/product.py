"""The files of the product, and what their text says of modules, classes and functions. Nothing is imported."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TOPS = ("commitlog", "router", "rumq", "pyspark_rumq")

Graph = dict[str, set[str]]


class Function(NamedTuple):
    """parameters: without self; lines: from `def` to the end, its docstring too"""

    path: Path
    name: str
    parameters: int
    lines: int

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}: {self.name}"


class Class(NamedTuple):
    """attributes: names that its body declares or a method of it assigns to self"""

    path: Path
    name: str
    attributes: frozenset[str]
    methods: frozenset[str]
    lines: int

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}: {self.name}"


@cache
def files() -> tuple[Path, ...]:
    return tuple(path for top in TOPS for path in sorted((ROOT / top).rglob("*.py")))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(source: str | ast.Module, where: str = "") -> Iterator[str]:
    """Every dotted name the source imports: `from a.b import c` gives a.b.c."""
    for node in ast.walk(ast.parse(source) if isinstance(source, str) else source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{where}:{node.lineno}: say the whole path, not a relative one"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def graph_of(sources: dict[str, str] | dict[str, ast.Module]) -> Graph:
    """Module -> modules it imports. sources: module -> its text"""
    graph = {}
    for module, text in sources.items():
        named = {name if name in sources else name.rpartition(".")[0] for name in imports(text, module)}
        graph[module] = (named & sources.keys()) - {module}
    return graph


@cache
def modules() -> Graph:
    return graph_of({module_of(path): tree_of(path) for path in files()})


IMPORTED = re.compile(r"""^\s*(?:import|export)\b[^;'"]*?['"](\.[^'"]+)['"]""", re.MULTILINE)


def scripts_of(sources: dict[str, str]) -> Graph:
    """Script -> scripts it imports. sources: path below the page's folder -> its text"""
    graph: Graph = {}
    for name, text in sources.items():
        graph[name] = set()
        for relative in IMPORTED.findall(text):
            parts: list[str] = []
            for part in PurePosixPath(name).parent.joinpath(relative).parts:
                parts = parts[:-1] if part == ".." else [*parts, part]
            graph[name].add("/".join(parts))
        graph[name] &= sources.keys()
        graph[name] -= {name}
    return graph


def scripts() -> Graph:
    """Of the page, without libraries of others."""
    page = ROOT / "rumq/gateway/page"
    found = [*page.rglob("*.js"), *page.rglob("*.mjs")]
    return scripts_of({str(path.relative_to(page)): path.read_text() for path in found if "vendor" not in path.parts})


def folders_of(graph: Graph) -> Graph:
    """Folder -> other folders its modules import. A package's `__init__` gives names of what lies in it, and `__main__`
    is a program: neither counts as importing, but who imports a package imports its folder."""
    packages = {module_of(path) for path in files() if path.name == "__init__.py"}
    folders: Graph = {}
    for name, others in graph.items():
        if name in packages or name.endswith(".__main__"):
            continue
        here = name.rpartition(".")[0]
        found = {other if other in packages else other.rpartition(".")[0] for other in others}
        folders.setdefault(here, set()).update(found - {here})
    return folders


def top_of(graph: Graph) -> Graph:
    """The same for what lies directly in `rumq`, and the packages beside it."""
    tops: Graph = {}
    for folder, others in folders_of(graph).items():
        here, *found = (".".join(name.split(".")[: 1 + name.startswith("rumq")]) for name in (folder, *others))
        if here != "rumq":
            tops.setdefault(here, set()).update(set(found) - {here, "rumq"})
    return tops


def circles(graph: Graph) -> list[list[str]]:
    """Strongly connected components of more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in graph.get(module, ()):
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


def functions_of(path: Path, tree: ast.Module) -> Iterator[Function]:
    in_classes = {id(part) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            is_static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)
            count = len(arguments) - (id(node) in in_classes and not is_static)
            yield Function(path, node.name, count, (node.end_lineno or 0) - node.lineno + 1)


def classes_of(path: Path, tree: ast.Module) -> Iterator[Class]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
            attributes = {
                each.target.id
                for each in node.body
                if isinstance(each, ast.AnnAssign)
                and isinstance(each.target, ast.Name)
                and "ClassVar" not in ast.unparse(each.annotation)
            }
            for part in [inner for method in methods for inner in ast.walk(method)]:
                if (
                    isinstance(part, ast.Attribute)
                    and isinstance(part.ctx, ast.Store)
                    and isinstance(part.value, ast.Name)
                    and part.value.id == "self"
                ):
                    attributes.add(part.attr)
            lines = (node.end_lineno or 0) - node.lineno + 1
            names = frozenset(method.name for method in methods)
            yield Class(path, node.name, frozenset(attributes), names, lines)


def functions() -> list[Function]:
    return [each for path in files() for each in functions_of(path, tree_of(path))]


def classes() -> list[Class]:
    return [each for path in files() for each in classes_of(path, tree_of(path))]


def has_behaviour(each: Class) -> bool:
    """It does something with what it holds: it has a method that is not one of Python's own."""
    return any(not name.startswith("__") for name in each.methods)


def is_kernel(path: Path) -> bool:
    return path.parent.name == "kernels"


MODULES_MAX = 12  # in a folder, without `__init__`
ATTRIBUTES_MAX = 15
PARAMETERS_MAX, KERNEL_PARAMETERS_MAX = 8, 12
LINES_MAX = 60  # of a function


def wide_classes() -> dict[str, int]:
    """Classes that do something and hold more than a reader keeps in mind."""
    return {
        str(each): len(each.attributes)
        for each in classes()
        if has_behaviour(each) and len(each.attributes) > ATTRIBUTES_MAX
    }


def long_signatures() -> dict[str, int]:
    return {
        str(each): each.parameters
        for each in functions()
        if each.parameters > (KERNEL_PARAMETERS_MAX if is_kernel(each.path) else PARAMETERS_MAX)
    }


def long_functions() -> dict[str, int]:
    return {str(each): each.lines for each in functions() if each.lines > LINES_MAX and not is_kernel(each.path)}


def full_folders() -> dict[str, int]:
    """Folders of more modules than can be read at a glance; the bench too."""
    sizes = Counter(path.parent for path in (*files(), *(ROOT / "bench").rglob("*.py")) if path.name != "__init__.py")
    return {str(folder.relative_to(ROOT)): count for folder, count in sizes.items() if count > MODULES_MAX}


def shared_class_names() -> dict[str, int]:
    """Class names that stand in two files or more."""
    seen = Counter(name for name, _ in {(each.name, each.path) for each in classes()})
    return {name: count for name, count in seen.items() if count > 1}


def mutual(folders: Graph) -> list[tuple[str, str]]:
    return sorted(
        (here, other)
        for here, others in folders.items()
        for other in others
        if here < other and here in folders.get(other, ())
    )


def behaves(tree: ast.Module) -> bool:
    """Whether a module has a function that does something. The functions of a Protocol are a docstring or `...`."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(not is_empty(statement) for each in functions for statement in each.body)


def is_empty(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def modules_that_do_something() -> list[Path]:
    """Of the product, as paths from the root."""
    return [
        path.relative_to(ROOT)
        for path in files()
        if path.name not in ("__init__.py", "__main__.py") and behaves(tree_of(path))
    ]


def place_of_test(module: Path) -> Path:
    """Where the test of a module stands: `rumq/net/pump.py`, `tests/net/test_pump.py`."""
    inside = module.relative_to("rumq") if module.parts[0] == "rumq" else module
    return ROOT / "tests" / inside.with_name(f"test_{module.name}")


def has_test_of_its_name(module: Path) -> bool:
    return place_of_test(module).exists()


@cache
def reached_from(test: Path) -> frozenset[str]:
    """Modules of the product that a test imports, itself or by a package or by other modules of the tests."""
    graph = modules()
    packages = {module_of(path) for path in files() if path.name == "__init__.py"}
    found: set[str] = set()
    seen: set[Path] = set()
    waiting = [test]
    while waiting:
        path = waiting.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        for name in imports(tree_of(path)):
            owner = name.rpartition(".")[0]
            if name.startswith("tests."):
                waiting += [ROOT / f"{each.replace('.', '/')}.py" for each in (name, owner)]
            else:
                found |= {name, owner} & graph.keys()
    return frozenset(found.union(*(graph[name] for name in found & packages)))


def fault_of_place(module: str, test: str, by: str = "") -> str | None:
    """What is wrong with a line that says which test file holds a module; None: nothing.

    by: "": the file imports the module; else a module that imports it and is imported there, or words of the file"""
    place = ROOT / test
    if not (ROOT / module).exists():
        return "the module is gone"
    if has_test_of_its_name(Path(module)):
        return "it has a test of its name"
    if not place.exists():
        return "the test is gone"
    name = module_of(ROOT / module)
    reached, graph = reached_from(place), modules()
    if not by:
        return None if name in reached else "the test does not import it"
    if name in reached:
        return "the test imports it: no other way is needed"
    if by not in graph or by == name:
        return None if by in place.read_text() else f"the test does not say {by}"
    if name not in graph[by]:
        return f"{by} does not import it"
    return None if by in reached or by in place.read_text() else f"the test does not import {by}"
