"""The release before and this tree mixed in one cluster: upgraded node by node under load, and back again.

The release before is a commit, of which an archive is unpacked; a clone without history skips this."""

import io
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from examples.cluster import Member
from tests.cli.conftest import rumqd
from tests.cluster.live.gaps import gap_of
from tests.cluster.live.harm import wait_until
from tests.cluster.live.run import RECOVERY_S, LiveRun
from tests.cluster.live.test_live import pytestmark as needs_etcd

ROOT = Path(__file__).parents[3]
RELEASE_BEFORE = "4d94693"
PACKAGES = ("rumq", "router", "commitlog")
GAP_SECONDS_MAX = 10.0  # a fail-over on a machine that others use, and modules that may not be compiled


def git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)


is_there = git("cat-file", "-e", f"{RELEASE_BEFORE}^{{commit}}").returncode == 0
pytestmark = [
    needs_etcd, pytest.mark.skipif(not is_there, reason=f"this clone has no commit {RELEASE_BEFORE}"),
]  # fmt: skip


def unpack(folder: Path) -> None:
    """The packages as they were, with this tree's compiled modules if all of their sources are the same."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", RELEASE_BEFORE, *PACKAGES).stdout)) as archive:
        archive.extractall(folder, filter="data")
    compiled = [path for package in PACKAGES for path in (ROOT / package).rglob("*.so")]
    declared = [path for package in PACKAGES for path in (ROOT / package).rglob("*.pxd")]
    written = (path.with_name(path.name.partition(".")[0] + ".py") for path in compiled)
    # What Cython's modules share has no source of its own.
    sources = [*(path for path in written if path.exists()), *declared]
    if all(is_same(path, folder / path.relative_to(ROOT)) for path in sources):
        for path in compiled:
            (folder / path.relative_to(ROOT)).write_bytes(path.read_bytes())


def is_same(one: Path, other: Path) -> bool:
    return other.exists() and one.read_bytes() == other.read_bytes()


def with_release(node: Member, folder: Path | None) -> None:
    """What runs when it is started next. None: this tree"""
    command = node.command[node.command.index(sys.executable) :]
    before = [] if folder is None else ["env", "PYTHONSAFEPATH=1", f"PYTHONPATH={folder}"]
    node.command[:] = [*before, *command]


def runs_release(node: Member, folder: Path) -> bool:
    return f"PYTHONPATH={folder}".encode() in Path(f"/proc/{node.pid}/environ").read_bytes().split(b"\0")


def swap(run: LiveRun, number: int, folder: Path | None, release: Path) -> float:
    """Stop a node, and start it with another release. returns: the longest wait for an acknowledgement meanwhile"""
    node, began = run.live.nodes[number], time.monotonic()
    pid = node.pid
    with_release(node, folder)
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: node.is_alive and node.pid != pid)
    assert runs_release(node, release) == (folder is not None)
    what = f"{node.name} has {'the release before' if folder else 'this tree'}"
    run.result.harms.append(what)
    assert run._recovered(what, RECOVERY_S) and run._all_are_back(what), run.result.report()
    ended = time.monotonic()
    assert run._recovered(f"after: {what}", RECOVERY_S), run.result.report()
    return max(gap_of(each.acked_at, began, ended) for each in run.workload.publishers)


def order_ban(run: LiveRun) -> None:
    """The journal of each shard has what the release before does not know: an order of the operator."""

    def is_done() -> bool:
        words = ["--kind", "client", "--name", "nobody", "--seconds", "3600", "--yes"]
        return rumqd("ask", "ban", *words, "--data", str(run.live.nodes[0].data)).status == 0

    wait_until(is_done)
    assert is_done(), run.result.report()


def lead_with_orders(run: LiveRun, number: int) -> None:
    """A node leads shard 0, whose journal has the order, and goes on doing so."""
    node = run.live.nodes[number]

    def leads() -> bool:
        if run.live.shard_records()[0]["leader"].startswith(f"{node.name}#"):
            return True
        rumqd("cluster", "move", "0", "--to", node.name, "--data", str(node.data))
        return False

    wait_until(leads)
    assert leads(), run.result.report()
    assert run._recovered(f"{node.name} leads shard 0", RECOVERY_S), run.result.report()
    assert not node.logs.read_text().count('"shard.failed"'), node.last_words()
    assert leads(), "it has given up, and another one leads"


def upgraded_and_back(tmp_path: Path, back: int) -> None:
    """back: how many nodes get the release before again"""
    release = tmp_path / "release"
    unpack(release)
    run = LiveRun(tmp_path / "nodes", 7, ["kill-node"], publishers=4, subscribers=2)
    for node in run.live.nodes:
        with_release(node, release)
    try:
        run.live.start()
        assert all(runs_release(node, release) for node in run.live.nodes)
        run.workload.start()
        assert run._recovered("the start", RECOVERY_S), run.result.report()
        gaps = [swap(run, number, None, release) for number in range(3)]
        order_ban(run)
        gaps += [swap(run, number, release, release) for number in range(back)]
        lead_with_orders(run, 0)
        run._end()
    finally:
        run.workload.end()
        run.live.stop()
    run.result.faults += run.ledger.faults
    print(" ".join(f"{gap:.3f}" for gap in gaps), len(run.ledger.acknowledged))
    assert not run.result.faults and not run.result.lost, run.result.report()
    assert len(run.ledger.acknowledged) > 200 and max(gaps) < GAP_SECONDS_MAX, gaps


@pytest.mark.timeout(300)
def test_nodes_are_upgraded_one_by_one_and_one_goes_back(tmp_path: Path) -> None:
    upgraded_and_back(tmp_path, 1)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_all_nodes_are_upgraded_and_all_go_back(tmp_path: Path) -> None:
    upgraded_and_back(tmp_path, 3)
