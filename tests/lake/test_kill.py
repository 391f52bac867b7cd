"""The exporter killed for real, again and again, while the log grows: every record is there once."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install 'rumq[spark]')")

import pyarrow.parquet as pq

from commitlog import RealFiles
from commitlog.disk.export_marker import exported_lsn
from rumq import lake as the_lake
from rumq.lake.folder import LocalFolder
from rumq.lake.parquet.export import Exporter
from rumq.lake.parquet.verify import verify
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


AT_A_STEP = """
import os, signal, sys
from commitlog import RealFiles
from rumq.lake.parquet.export import Exporter
from rumq.lake.folder import LocalFolder

data, to = sys.argv[1:3]
left, now_s = map(int, sys.argv[3:])

def step(name):
    global left
    left -= 1
    if left == 0:
        print(name, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

exporter = Exporter(RealFiles(), data, LocalFolder(to), marks=True, step=step)
exporter.merge(1 << 40, 100_000, now_s=now_s, keep_s=100)
exporter.run()
"""


def killed_at_step(number: int, data: Path, to: Path, now_s: int) -> str:
    """The step behind which it was killed; "": it came to its end. number: counted from 1"""
    found = subprocess.run(
        [sys.executable, "-c", AT_A_STEP, str(data), str(to), str(number), str(now_s)],
        capture_output=True, text=True, env=ENVIRONMENT, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode in (0, -signal.SIGKILL), found.stderr
    return found.stdout.strip()


@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(1800)])])
def test_killed_at_any_step_nobody_misses_or_doubles_a_record(tmp_path: Path, kills: int) -> None:
    """While the log grows, and files are merged, shown and removed. Readers of the manifest look after each kill."""
    data, to = tmp_path / "data", tmp_path / "lake"
    log, chance = Log(data), random.Random(11)
    groups = now_s = 0
    at: Counter[str] = Counter()
    number = 30
    while at.total() < kills:
        log.fill(9, first=groups, ts=MADE_NOW + now_s * HOUR // 2000)
        groups += 9
        now_s += 40
        name = killed_at_step(chance.randint(1, number), data, to, now_s)
        number = max(8, number - 5) if not name else number + 1
        at.update([name] if name else [])
        read = [lsn for path in the_lake.files(str(to)) for lsn in pq.ParquetFile(path).read()["lsn"].to_pylist()]
        assert sorted(read) == list(range(len(read)))
        assert exported_lsn(RealFiles(), f"{data}/main/g1/p0") <= len(read)
    exporter = Exporter(RealFiles(), str(data), LocalFolder(str(to)))
    exporter.run()
    for later in range(now_s, now_s + 800, 100):
        exporter.merge(1 << 40, 100_000, now_s=later, keep_s=100)
    exporter.close()
    assert lsns_in(to) == list(range(log.finished_lsn))
    assert list(verify(LocalFolder(str(to)))) == []
    assert not list(to.rglob("*.new")) and not list(to.glob("_merged/*"))
    if kills > 100:
        assert set(at) == {
            "written", "synced", "renamed", "checked", "committed", "marked", "merged", "linked", "shown", "removed"
        }  # fmt: skip


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
