"""Wheels as they are released: for which machines they are made, and how soon one that is installed serves."""

import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, tool

FIRST_MESSAGE_SECONDS_MAX = 30.0


def test_wheels_are_made_for_each_python_and_both_processors() -> None:
    """By cibuildwheel's own reading of pyproject.toml."""
    made = []
    for arch in ("x86_64", "aarch64"):
        command = [tool("cibuildwheel", "pip install cibuildwheel"), "--platform", "linux", "--archs", arch]
        done = subprocess.run(
            [*command, "--print-build-identifiers", str(ROOT)],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        made += done.stdout.split()
    assert made == [f"cp3{minor}-manylinux_{arch}" for arch in ("x86_64", "aarch64") for minor in (11, 12, 13)]


def test_a_wheel_is_compiled_or_not_made() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert settings["environment"]["RUMQ_COMPILE"] == "require"
    assert settings["linux"]["archs"] == ["x86_64", "aarch64"]
    assert (ROOT / settings["test-command"].split("{project}/")[1]).exists()


def test_a_wheel_has_every_file_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """By setuptools' own reading of pyproject.toml."""
    from setuptools.command.build_py import build_py
    from setuptools.dist import Distribution

    monkeypatch.chdir(ROOT)
    project = Distribution()
    project.parse_config_files()
    command = build_py(project)
    command.ensure_finalized()
    command.manifest_files = {}
    taken = {
        (ROOT / file).resolve()
        for package in project.packages
        for file in command.find_data_files(package, package.replace(".", "/"))
    }
    there = {path for path in (ROOT / "rumq/gateway/page").rglob("*") if path.is_file()}
    assert there and there <= taken


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_wheel_is_installed_without_a_compiler_and_serves_soon(tmp_path: Path) -> None:
    """A new environment, all dependencies from the index, a message published and received."""
    wheel = os.environ.get("RUMQ_WHEEL")
    if wheel is None:
        pytest.skip("RUMQ_WHEEL is missing: the path of a wheel")
    started = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=300)
    pip = [tmp_path / "venv/bin/pip", "install", "-q", "--only-binary", ":all:", wheel]
    subprocess.run(pip, check=True, timeout=300, env={**os.environ, "CC": "false"})
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/packaging/installed.py"), str(tmp_path / "venv/bin/rumqd")],
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert json.loads(done.stdout)["kernels"] == "compiled"
    assert time.monotonic() - started <= FIRST_MESSAGE_SECONDS_MAX
