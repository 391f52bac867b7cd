"""The exporter killed for real, again and again, while the log grows: every record is there once."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

from rumq.lake.folder import LocalFolder
from rumq.lake.verify import verify
from tests.cli.conftest import ENVIRONMENT, command
from tests.lake.lakes import HOUR, MADE_NOW, Log, lsns_in

KILLS = 200


def killed_after(seconds: float, data: Path, to: Path) -> tuple[int, float]:
    """Exit status, and how long it lived."""
    begun = time.monotonic()
    process = subprocess.Popen(
        command("lake", "export", "--data", str(data), "--to", str(to), "--once"),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT,
    )  # fmt: skip
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    return process.wait(60), time.monotonic() - begun


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_killed_at_any_moment_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """It exports and merges: the records are of hours that are long over."""
    data, to = tmp_path / "data", tmp_path / "lake"
    log, chance = Log(data), random.Random(7)
    groups = kills = 0
    seconds = 10.0
    while kills < KILLS:
        log.fill(16, first=groups, ts=MADE_NOW + kills * HOUR // 50)
        groups += 16
        status, lived = killed_after(seconds, data, to)
        if status == -signal.SIGKILL:
            kills += 1
            assert len(list((to / "_rumq").glob("*.jsonl"))) <= 1
        else:
            assert status == 0
            whole = lived
        # Most of its life is loading pyarrow: what is of interest comes behind that.
        seconds = whole * chance.uniform(0.6, 1.0)
    status, _ = killed_after(60, data, to)
    assert status == 0
    assert lsns_in(to) == list(range(log.finished_lsn))
    assert list(verify(LocalFolder(str(to)))) == []
    assert not list(to.rglob("*.new"))
