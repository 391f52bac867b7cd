"""What compiled modules share is compiled once; what runs beside a product that is not compiled has all of its own."""

import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

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
    """setup.py with one kernel, and without the modules that it lists."""
    kernels = folder / "rumq/mqtt/kernels"
    kernels.mkdir(parents=True)
    for package in (folder / "rumq", folder / "rumq/mqtt", kernels):
        (package / "__init__.py").touch()
    (kernels / "one.py").write_text("def one() -> int:\n    return 1\n")
    script = re.sub(
        r"^(HOT|SELDOM) = \[.*?^\]", r"\1 = []", (ROOT / "setup.py").read_text(), flags=re.M | re.S
    )
    (folder / "setup.py").write_text(script)
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
    assert build(tree, CC=str(compiler), LDSHARED="gcc -shared") == ["one"]
    found = subprocess.run(
        [sys.executable, "-c", "from rumq.mqtt.kernels.one import one; print(one())"],
        cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout == "1\n"
    assert build(tree) == ["cython_shared", "one"]


def test_without_a_compiler_nothing_is_compiled(tmp_path: Path) -> None:
    assert build(small_tree(tmp_path), CC=str(tmp_path / "none")) == []
