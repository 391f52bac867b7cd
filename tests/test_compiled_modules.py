"""Which modules are compiled: by a mark in each. One that was edited since it was compiled is named at the start."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rumq.compiled_modules import FLOORS, NOTE, SUFFIX, build_id, is_stale, stale_modules

ROOT = Path(__file__).parents[1]
MARK = re.compile(r"^# ?compiled\b.*", re.M | re.I)
MARKS = {"# compiled: hot", "# compiled: warm"}
SOURCES = sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))


def marks_of(path: Path) -> list[str]:
    return MARK.findall(path.read_text())


def test_a_mark_is_one_of_two_and_stands_below_the_docstring() -> None:
    """What looks like one and is not would be ignored."""
    marked = [path for path in SOURCES if marks_of(path)]
    assert len(marked) > 70
    for path in marked:
        (mark,) = marks_of(path)
        assert mark in MARKS and path.parent.name != "kernels", path
        assert path.read_text().split("\n" + mark)[0].endswith('"""'), path


def test_a_pxd_belongs_to_a_module_that_is_compiled() -> None:
    """Of a module that is not it is ignored, and its fields hold nothing."""
    typed = [path for floor in FLOORS for path in (ROOT / floor).rglob("*.pxd")]
    assert typed
    for path in typed:
        module = path.with_suffix(".py")
        assert path.parent.name == "kernels" or marks_of(module), f"{module} has no mark"


def compiled(folder: Path, module: str, *, of: str | None) -> Path:
    """A module and what seems to be compiled of a source; of: None: by a linker that names it by itself"""
    source = folder / f"{module}.py"
    source.parent.mkdir(parents=True, exist_ok=True)
    note = NOTE[: -len(b"rumq")] + bytes(24)
    if of is not None:
        source.write_text(of)
        note = NOTE[: -len(b"rumq")] + build_id(source)
    made = folder / f"{module}{SUFFIX}"
    made.write_bytes(b"\x7fELF" + bytes(500) + note + bytes(9000))
    source.write_text("edited = 1\n")
    return made


def test_an_edit_is_seen_whatever_the_times_are(tmp_path: Path) -> None:
    made = compiled(tmp_path, "rumq/net/pump", of="edited = 0\n")
    source = tmp_path / "rumq/net/pump.py"
    os.utime(source, (0, 0))
    assert is_stale(made, source) and stale_modules(tmp_path) == ["rumq.net.pump"]
    source.write_text("edited = 0\n")
    os.utime(made, (0, 0))
    assert stale_modules(tmp_path) == []


def test_fields_in_a_pxd_count_where_there_is_one(tmp_path: Path) -> None:
    """A wheel has none."""
    typed = tmp_path / "router/feed.pxd"
    typed.parent.mkdir()
    typed.write_text("cdef class Feed:\n    cdef int a\n")
    compiled(tmp_path, "router/feed", of="edited = 1\n")
    assert stale_modules(tmp_path) == []
    typed.write_text("cdef class Feed:\n    cdef int a, b\n")
    assert stale_modules(tmp_path) == ["router.feed"]
    typed.unlink()
    assert stale_modules(tmp_path) == []


def test_what_nobody_noted_a_source_of_is_not_judged(tmp_path: Path) -> None:
    """Of an earlier setup.py, of another linker; or without a source beside it."""
    compiled(tmp_path, "commitlog/chunk", of=None)
    compiled(tmp_path, "commitlog/partition", of="edited = 0\n")
    (tmp_path / "commitlog/partition.py").unlink()
    assert stale_modules(tmp_path) == []


@pytest.fixture(scope="module")
def edited_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product, uncompiled, with a module that nothing imports and that was compiled before an edit."""
    tree = tmp_path_factory.mktemp("tree")
    for floor in FLOORS:
        shutil.copytree(ROOT / floor, tree / floor, ignore=shutil.ignore_patterns("*.so", "__pycache__", "page"))
    shutil.copy(ROOT / "setup.py", tree)
    compiled(tree, "rumq/net/spare", of="edited = 0\n")
    return tree


def in_tree(tree: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-m", "rumq", *words], {**os.environ, "PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}


def test_the_start_of_a_broker_says_which_and_how_to_compile_it(edited_tree: Path, tmp_path: Path) -> None:
    words, environment = in_tree(edited_tree, "run", "--port", "0", "--data", str(tmp_path / "data"))
    broker = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert broker.stderr is not None
        events = [json.loads(broker.stderr.readline()) for _ in range(3)]
    finally:
        broker.terminate()
        broker.communicate(timeout=60)
    (told,) = [event for event in events if event["event"] == "modules.stale"]
    assert told["modules"] == ["rumq.net.spare"]
    assert f"cd {edited_tree} && {sys.executable} setup.py build_ext --inplace" in told["why"]


def test_the_version_says_so_too(edited_tree: Path) -> None:
    words, environment = in_tree(edited_tree, "--version")
    said = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert "rumq.net.spare" in said and "setup.py build_ext --inplace" in said
    words, environment = in_tree(edited_tree, "version", "--json")
    said = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert json.loads(said)["stale"] == ["rumq.net.spare"]
