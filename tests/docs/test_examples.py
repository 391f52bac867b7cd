"""The examples that README.md names do what they say: `./run`, and the two that pull the plug.

`./run` gets an environment whose pip installs nothing; everything else is as a user has it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 600


def ran(*command: object, env: dict[str, str] | None = None) -> str:
    """What a command says; it must succeed."""
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, env={**os.environ, **(env or {})}, capture_output=True, text=True,
        timeout=SECONDS_MAX, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment with this Python, whose pip notes what it is asked and does nothing."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/sh\nif [ "$1 $2" = "-m pip" ]; then echo "$@" >> "{tmp_path}/asked"; exit 0; fi\n'
        f'exec "{sys.executable}" "$@"\n'
    )
    python.chmod(0o755)
    return tmp_path


@pytest.mark.long
def test_run_installs_and_shows_the_main_story(environment: Path) -> None:
    said = ran(ROOT / "run", "--data", environment / "data", env={"RUMQ_VENV": str(environment / "venv")})
    asked = (environment / "asked").read_text()
    assert "install" in asked and f"--editable {ROOT}[examples" in asked
    assert said.count("\n== ") >= 4, said
    assert list((environment / "data" / "main").rglob("*.seg")), "the log is where it was asked for"


@pytest.mark.long
def test_the_main_story_runs_alone(tmp_path: Path) -> None:
    said = ran(sys.executable, "examples/main.py", "--data", tmp_path / "data")
    assert "replay" in said.lower(), said


@pytest.mark.long
def test_pulling_the_plug_loses_nothing(tmp_path: Path) -> None:
    said = ran(sys.executable, "examples/plug.py", "--data", tmp_path / "data", "--times", 2)
    assert "acknowledged and missing: 0" in said and said.count("kill -9 after") == 2, said


@pytest.mark.long
def test_killing_each_node_of_a_cluster_loses_nothing() -> None:
    said = ran(sys.executable, "examples/cluster_plug.py", "--times", 1)
    assert "each at the same lsn on every node: yes" in said, said
