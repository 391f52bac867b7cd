"""The sdist and the wheel: what is in them, and that they can be installed with a compiler, without one, and where
Cython fails. Packages are built from the tree as Git has it, by the build backend itself: no network, no pip."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.broker_process import Rumqd

ROOT = Path(__file__).parents[1]
SECONDS_MAX = 1500
PACKAGES = {
    "commitlog",
    "router",
    "rumq",
    "pyspark_rumq",
}  # Spark imports what is called pyspark_* to find its sources
BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def built(what: str, tree: Path, into: Path, **environment: str) -> Path:
    """what: "sdist" or "wheel" """
    into.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, f"build_{what}", str(into)],
        cwd=tree, env={**os.environ, "PYTHONSAFEPATH": "1", **environment}, capture_output=True, text=True,
        timeout=SECONDS_MAX, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return into / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    tree = folder / "tree"
    tree.mkdir()
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=False)
    if names.returncode:
        pytest.skip("this is no clone")
    for name in names.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return built("sdist", tree, folder / "dist")


@pytest.fixture
def unpacked(sdist: Path, tmp_path: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    return tree


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def top_level(names: list[str]) -> set[str]:
    return {name.split("/")[0] for name in names if not name.split("/")[0].endswith((".dist-info", ".data"))}


def installed(wheel: Path, folder: Path) -> Path:
    """A folder that has what an installation would put into site-packages."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def says_of_its_kernels(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "rumq", "--version"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.split("kernels: ")[1].split(",")[0]


def test_an_sdist_has_what_it_takes_to_build_a_wheel(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    wanted = [name for name in listed if name.split("/")[0] in PACKAGES]
    assert any(name.endswith(".pxd") for name in wanted)
    assert set(wanted) <= names
    assert {
        "setup.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "config.toml",
        "docs/guides/security.md",
    } <= names
    assert not [name for name in names if name.startswith(("bench/", "tests/", "build/")) or name.endswith(".c")]


def test_a_wheel_has_the_packages_and_nothing_else(unpacked: Path, tmp_path: Path) -> None:
    wheel = built("wheel", unpacked, tmp_path / "dist", RUMQ_COMPILE="0")
    names = names_in(wheel)
    assert top_level(names) == PACKAGES
    assert not [name for name in names if name.endswith((".pxd", ".c", ".so")) or "/testing/" in name]
    assert says_of_its_kernels(installed(wheel, tmp_path / "site")) == "python"


def test_what_cython_cannot_take_is_left_as_python(unpacked: Path, tmp_path: Path) -> None:
    with open(unpacked / "commitlog/kernels/names.py", "a") as file:
        file.write("\n\ndef no_c(a: cython.int) -> cython.int:\n    x: cython.no_such_type[a] = a\n    return &x\n")
        file.write("# padding\n" * 50_000)  # the longest is translated first, so that little is compiled in vain
    wheel = built("wheel", unpacked, tmp_path / "dist")
    assert top_level(names_in(wheel)) == PACKAGES
    assert not [name for name in names_in(wheel) if name.endswith(".so")]


@pytest.mark.long
@pytest.mark.timeout(SECONDS_MAX)
@pytest.mark.parametrize("compiler", ["false", "cc"])
def test_a_wheel_is_built_whole_or_of_python(unpacked: Path, tmp_path: Path, compiler: str) -> None:
    """With a compiler that fails, and with one: nothing is half compiled, and what was built serves."""
    wheel = built("wheel", unpacked, tmp_path / "dist", CC=compiler)
    names = names_in(wheel)
    assert top_level(names) == PACKAGES
    folder = installed(wheel, tmp_path / "site")
    expected = "python" if compiler == "false" else "compiled"
    assert says_of_its_kernels(folder) == expected
    assert any(name.endswith(".so") for name in names) == (compiler == "cc")

    class Installed(Rumqd):
        def command(self) -> list[str]:
            return ["env", "-C", str(folder), *super().command()]

    broker = Installed(tmp_path / "data")
    broker.start()
    assert broker.event("broker.starting")["kernels"] == expected
    assert len(broker.named("kernels.plain")) == (compiler == "false")
    assert broker.stop() == 0
