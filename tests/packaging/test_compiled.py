"""What compiled modules share is compiled once; what runs beside a product that is not compiled has all of its own."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from rumq.compiled_modules import stale_modules

ROOT = Path(__file__).parents[2]
SHARED = "rumq.cython_shared"


def compiled(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in (ROOT / folder).rglob(f"*{EXTENSION_SUFFIXES[0]}")]
    if not found:
        pytest.skip("nothing is compiled here")
    return [path for path in found if not path.name.startswith(SHARED.rpartition(".")[2])]


def test_the_modules_of_the_product_share() -> None:
    """But for those that setup.py names."""
    found = compiled("commitlog", "router", "rumq")
    alone = {path.name.partition(".")[0] for path in found if SHARED.encode() not in path.read_bytes()}
    assert alone == {"filters"}


def test_those_of_the_bench_and_of_tests_do_not() -> None:
    """`build/plain` has no compiled modules, so no shared one, and those of the tree are imported beside it."""
    assert not [path for path in compiled("bench", "tests") if SHARED.encode() in path.read_bytes()]


def small_tree(folder: Path) -> Path:
    """setup.py with one kernel, one module that is marked, and one that is not."""
    kernels = folder / "rumq/mqtt/kernels"
    kernels.mkdir(parents=True)
    for package in (folder / "rumq", folder / "rumq/mqtt", kernels):
        (package / "__init__.py").touch()
    (kernels / "one.py").write_text("def one() -> int:\n    return 1\n")
    (folder / "rumq/two.py").write_text('"""Two."""\n# compiled: hot\n\n\ndef two() -> int:\n    return 2\n')
    (folder / "rumq/plain.py").write_text('"""Three."""\n')
    for name in ("setup.py", "rumq/compiled_modules.py"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "pyproject.toml").write_text('[project]\nname = "rumq"\nversion = "0"\n')
    return folder


def build(tree: Path, **environment: str) -> list[str]:
    """Compile it where it lies. returns: names of what is compiled then"""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    given = {name: value for name, value in os.environ.items() if not name.startswith("RUMQ_")}
    done = subprocess.run(
        command, cwd=tree, env=given | environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return sorted(path.name.partition(".")[0] for path in (tree / "rumq").rglob("*.so"))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_what_cannot_share_is_compiled_alone(tmp_path: Path) -> None:
    """Sharing is young in Cython: C that lacks a function is made again, and is whole."""
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-alone/*) exec gcc "$@" ;; esac\nexit 1\n')
    compiler.chmod(0o755)
    tree = small_tree(tmp_path / "tree")
    assert build(tree, CC=str(compiler), LDSHARED="gcc -shared") == ["one", "two"]
    assert printed(tree, "from rumq.mqtt.kernels.one import one; print(one())") == "1"
    assert build(tree) == ["cython_shared", "one", "two"]


def printed(tree: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_what_is_of_another_source_is_compiled_again_and_what_lost_its_mark_is_removed(tmp_path: Path) -> None:
    """Whatever the times are: those of files that were copied say nothing."""
    tree, call = small_tree(tmp_path), "from rumq.two import two; print(two())"
    source = tree / "rumq/two.py"
    build(tree)
    assert stale_modules(tree) == [] and printed(tree, call) == "2"
    source.write_text(source.read_text().replace("return 2", "return 22"))
    os.utime(source, (0, 0))
    assert stale_modules(tree) == ["rumq.two"] and printed(tree, call) == "2", "what was compiled runs"
    build(tree)
    assert stale_modules(tree) == [] and printed(tree, call) == "22"
    source.write_text(source.read_text().replace("# compiled: hot", ""))
    assert build(tree) == ["cython_shared", "one"] and printed(tree, call) == "22"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_a_first_look_does_not_wait_for_what_runs_once_a_connection(tmp_path: Path) -> None:
    """But for what a hot module may be compiled against."""
    tree = small_tree(tmp_path)
    for name in ("rare", "typed"):
        (tree / f"rumq/{name}.py").write_text('"""Three."""\n# compiled: warm\n\n\nclass Three:\n    pass\n')
    (tree / "rumq/typed.pxd").write_text("cdef class Three:\n    pass\n")
    (tree / "rumq/queues/kernels").mkdir(parents=True)
    (tree / "rumq/queues/kernels/off.py").write_text('"""Four."""\n')
    first, rest = ["cython_shared", "one", "two", "typed"], ["rare", "off"]
    assert build(tree, RUMQ_COMPILE="product") == sorted(first)
    assert build(tree) == sorted(first + rest)
    assert build(tree, RUMQ_COMPILE="product") == sorted(first + rest)


def test_without_a_compiler_nothing_is_compiled(tmp_path: Path) -> None:
    assert build(small_tree(tmp_path), CC=str(tmp_path / "none")) == []
