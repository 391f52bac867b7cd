"""The tests themselves are tested: each fault of the lists, planted in a copy of the project without compiled kernels,
makes the test fail that is named for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bridge import planted as bridges
from tests.commitlog import planted as packing
from tests.faults import planted as log
from tests.faults.kill import planted as sessions
from tests.faults.planted import Planted
from tests.kafka import planted as kafka
from tests.session import planted as connections
from tests.simulation import planted as shards

ROOT = Path(__file__).parents[2]
LISTS = (log, packing, sessions, shards, kafka, bridges, connections)
PLANTED = [planted for each in LISTS for planted in each.PLANTED]
SECONDS_MAX = 300


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files alone, so nothing compiled is among them."""
    folder = tmp_path_factory.mktemp("copy")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    return folder


def outcome(copy: Path, test: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not long",
            "--timeout", "60", "--tb", "line", test,
        ],
        cwd=copy, env=os.environ | {"PYTHONPATH": str(copy)}, capture_output=True, text=True,
        timeout=SECONDS_MAX, check=False,
    )  # fmt: skip


def test_every_line_that_a_fault_is_planted_in_is_there_once() -> None:
    for planted in PLANTED:
        text = (ROOT / planted.file).read_text()
        assert text.count(planted.right) == 1, f"{planted.name}: bring the list up to date"
        assert (ROOT / planted.caught_by.partition("::")[0]).is_file()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_without_a_fault_they_pass(copy: Path) -> None:
    for test in sorted({planted.caught_by for planted in PLANTED}):
        done = outcome(copy, test)
        assert done.returncode == 0, f"{test}\n{done.stdout}"


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_fault_is_caught(copy: Path, planted: Planted) -> None:
    path = copy / planted.file
    text = path.read_text()
    path.write_text(text.replace(planted.right, planted.wrong))
    try:
        done = outcome(copy, planted.caught_by)
    finally:
        path.write_text(text)
    assert done.returncode == 1, f"not caught by {planted.caught_by}:\n{done.stdout[-2000:]}"
