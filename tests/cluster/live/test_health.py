"""`rumqd cluster status` of each node says what is wrong anywhere, and is well again when it is over."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, maybe_shard_pid
from tests.cluster.live.test_live import pytestmark as needs_etcd

pytestmark = needs_etcd
SECONDS_MAX = 60.0


def wait_for(live: LiveCluster, number: int, words: str) -> None:
    """Until a node's status has these words, and the exit status that belongs to its line of health."""
    until = time.monotonic() + SECONDS_MAX
    while True:
        ended = rumqd("cluster", "status", "--data", str(live.nodes[number].data))
        assert (ended.status == 0) == ended.out.startswith("health: ok\n"), ended.out
        if words in ended.out:
            return
        assert time.monotonic() < until, ended.out
        time.sleep(0.1)


@pytest.mark.timeout(200)
def test_every_node_tells_of_a_copy_that_crashes_or_hangs_and_of_etcd(tmp_path: Path) -> None:
    live = LiveCluster(tmp_path)
    try:
        live.start()
        for number in range(3):
            wait_for(live, number, "health: ok")
        leader = live.shard_records()[0]["leader"].partition("#")[0]
        follower = next(node for node in live.nodes if node.name != leader)
        others = [number for number, node in enumerate(live.nodes) if node is not follower]

        pid = maybe_shard_pid(follower, 0)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        for number in others:
            wait_for(live, number, f"shard 0: the copy at {follower.name}")
        os.kill(pid, signal.SIGCONT)
        wait_for(live, others[0], "health: ok")

        for _ in range(3):
            pid = maybe_shard_pid(follower, 0)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.5)
        wait_for(live, live.number_of(follower), "the process of shard 0 on this node has ended")
        wait_for(live, others[0], "health: ok")

        member = live.cluster.etcds[0]
        live.cluster.held.add(member.name)
        os.kill(member.pid, signal.SIGKILL)
        wait_for(live, others[0], f"{member.address} of the control plane does not answer")
        live.cluster.held.discard(member.name)
        wait_for(live, others[0], "health: ok")
    finally:
        live.stop()
