"""./run and ./test install this tree once: what is up to date is neither installed nor compiled again.

`packaging/editable.sh` is run in a small tree, with a `python` that notes how it was called."""

import os
import subprocess
from pathlib import Path

import pytest

EDITABLE = Path(__file__).parents[2] / "packaging/editable.sh"
PYTHON = """#!/bin/sh
case "$*" in
-VV) echo Python 3 ;;
*setup.py*) echo "compile $RUMQ_COMPILE" >>../calls; [ ! -e fails ] ;;
*--editable*) echo "install $RUMQ_COMPILE ${*##* }" >>../calls ;;
*pip*) ;;
*) echo "$@" >>../calls ;;
esac
"""


class Tree:
    """calls: what the environment's python was asked for since the last look"""

    def __init__(self, folder: Path) -> None:
        self.root, self._calls = folder / "tree", folder / "calls"
        for name in ("commitlog", "router", "rumq/kernels", "bench", "tests/fuzz", "venv/bin"):
            (self.root / name).mkdir(parents=True)
        (self.root / "pyproject.toml").write_text("[project]\n")
        (self.root / "setup.py").write_text("")
        (self.root / "rumq/hot.py").write_text('"""Hot."""\n# compiled: hot\n')
        (self.root / "rumq/kernels/one.py").write_text("")
        python = self.root / "venv/bin/python"
        python.write_text(PYTHON)
        python.chmod(0o755)

    def install(self, extras: str, wish: str, *, status: int = 0, **environment: str) -> list[str]:
        script = f'set -euo pipefail; say() {{ :; }}; . "{EDITABLE}"; install_tree venv {extras} {wish}'
        given = {name: value for name, value in os.environ.items() if not name.startswith("RUMQ_")}
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.root,
            env=given | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        calls = sorted(self._calls.read_text().splitlines()) if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return calls


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_second_install_does_nothing(tree: Tree) -> None:
    """pip has nothing to compile: that is done beside it."""
    assert tree.install("examples,spark", "product") == ["compile product", "install 0 .[examples,spark]"]
    assert tree.install("examples,spark", "product") == []
    assert tree.install("examples", "product") == []


def test_what_changed_is_done_again(tree: Tree) -> None:
    tree.install("dev", "1")
    for name in ("rumq/hot.py", "rumq/kernels/one.py", "setup.py"):
        path = tree.root / name
        path.write_text(path.read_text() + "# edited\n")
        assert tree.install("dev", "1") == ["compile 1"], name
    (tree.root / "rumq/kernels/one.so").write_text("made by somebody else")
    assert tree.install("dev", "1") == ["compile 1"]
    (tree.root / "rumq/plain.py").write_text("")
    assert tree.install("dev", "1") == []
    (tree.root / "pyproject.toml").write_text("[project]\nversion = 2\n")
    assert tree.install("dev", "1") == ["install 0 .[dev]"]
    assert tree.install("dev,spark", "1") == ["install 0 .[dev,spark]"]


def test_a_run_and_the_tests_share_what_they_compile(tree: Tree) -> None:
    assert tree.install("examples", "product") == ["compile product", "install 0 .[examples]"]
    assert tree.install("examples", "1") == ["compile 1"], "kernels of the bench and of tests are missing"
    assert tree.install("examples", "product") == []


def test_without_compiling(tree: Tree) -> None:
    assert tree.install("dev", "1", RUMQ_COMPILE="0") == ["install 0 .[dev]"]
    assert tree.install("dev", "1", RUMQ_COMPILE="0") == []
    assert tree.install("dev", "1") == ["compile 1"]


def test_what_could_not_be_compiled_fails_if_it_was_required_and_is_tried_again(tree: Tree) -> None:
    """setup.py says itself whether it fails."""
    (tree.root / "fails").touch()
    assert tree.install("dev", "1", status=1, RUMQ_COMPILE="require") == [
        "compile require",
        "install 0 .[dev]",
    ]
    (tree.root / "fails").unlink()
    assert tree.install("dev", "1", RUMQ_COMPILE="require") == ["compile require"]
