"""What the operator has ordered of a cluster stays when the leader of a shard is killed, and when a shard is moved.

Three nodes, three etcd. Some 20 s."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.cluster import Member
from rumq.mqtt.reasons import Reason
from rumq.net.client_placement import home_of
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, maybe_shard_pid, signal_all
from tests.cluster.live.test_live import pytestmark as needs_etcd
from tests.conformance.peer import Ended, Peer

pytestmark = [needs_etcd, pytest.mark.timeout(200)]
SECONDS_MAX = 40.0  # for what takes one or two on a machine that does nothing else
LOST = (Ended, OSError, AssertionError)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveCluster]:
    cluster = LiveCluster(tmp_path / "cluster")
    cluster.start()
    yield cluster
    cluster.stop()


def until(is_so: Callable[[], Any], what: Callable[[], object]) -> Any:
    end = time.monotonic() + SECONDS_MAX
    while not (found := is_so()):
        assert time.monotonic() < end, what()
        time.sleep(0.1)
    return found


def maybe_answer(live: LiveCluster, *words: str) -> dict[str, Any] | None:
    """Of all shards; None: one is missing, or refuses for now."""
    done = rumqd("ask", *words, "--json", "--data", str(live.nodes[0].data))
    answer: dict[str, Any] = json.loads(done.out) if done.status == 0 else {}
    return answer if answer and not answer.get("missing") else None


def order(live: LiveCluster, *words: str) -> None:
    until(lambda: maybe_answer(live, *words) is not None, lambda: words)


def code_of(live: LiveCluster, number: int, client_id: str) -> int | None:
    """The reason code of CONNACK; None: the connection ended without one."""
    try:
        with Peer(live.addresses[number], deadline_s=15) as peer:
            return peer.connect(client_id).code
    except LOST:
        return None


def is_refused(live: LiveCluster, client_id: str, code: int) -> bool:
    """By every node; while a leader is chosen others may be refused for other reasons, but nobody is let in."""
    codes = [code_of(live, number, client_id) for number in range(len(live.nodes))]
    assert 0 not in codes, f"{client_id} was let in: {codes}"
    return set(codes) == {code}


def leader_of(live: LiveCluster, shard: int) -> Member:
    name = live.shard_records()[shard]["leader"].partition("#")[0]
    return next(each for each in live.nodes if each.name == name)


def kill_leader(live: LiveCluster, shard: int) -> None:
    """kill -9 of the process that leads a shard; another one leads when this returns."""
    epoch = live.shard_records()[shard]["epoch"]
    leader = leader_of(live, shard)
    pid = until(lambda: maybe_shard_pid(leader, shard), leader.last_words)
    signal_all([pid], signal.SIGKILL)
    until(lambda: live.shard_records()[shard]["epoch"] > epoch, live.shard_records)


def move(live: LiveCluster, shard: int) -> None:
    """As planned, to a node that does not lead it."""

    def is_moved() -> bool:
        to = next(each for each in live.nodes if each is not leader_of(live, shard))
        return not rumqd("cluster", "move", str(shard), "--to", to.name, "--data", str(to.data)).status

    until(is_moved, live.shard_records)


def packets_told(live: LiveCluster, client_id: str) -> int:
    lines = [line for node in live.nodes for line in node.logs.read_text().splitlines()]
    return sum('"trace.packet"' in line and f'"{client_id}"' in line for line in lines)


def test_bans_traces_and_a_drain_stay_when_a_leader_is_killed_and_when_a_shard_is_moved(
    live: LiveCluster,
) -> None:
    shards = range(live.cluster.shards)
    banned, traced = (
        [next(f"{prefix}{n}" for n in range(99) if home_of(f"{prefix}{n}", len(shards)) == shard) for shard in shards]
        for prefix in ("eve", "ann")
    )
    for name in banned:
        order(live, "ban", "--kind", "client", "--name", name, "--seconds", "600", "--yes")
    for name in traced:
        order(live, "trace", "--kind", "client", "--name", name, "--seconds", "600")
    for name in banned:
        until(lambda name=name: is_refused(live, name, Reason.BANNED), live.shard_records)

    for shard, change in enumerate((kill_leader, move)):
        change(live, shard)
        until(lambda shard=shard: is_refused(live, banned[shard], Reason.BANNED), live.shard_records)
        told = packets_told(live, traced[shard])

        def is_traced(shard: int = shard, told: int = told) -> bool:
            """The look at who has come is every quarter of a second: it stays for longer."""
            try:
                with Peer(live.addresses[0], deadline_s=15) as peer:
                    if peer.connect(traced[shard]).code:
                        return False
                    time.sleep(0.5)
                    peer.publish("t", b"x", qos=1)
            except LOST:
                return False
            return packets_told(live, traced[shard]) > told

        until(is_traced, live.shard_records)
    found = until(lambda: maybe_answer(live, "bans"), live.shard_records)
    assert {row["name"] for row in found["bans"]} == set(banned)
    assert all(0 < row["seconds"] < 600 for row in found["bans"])

    order(live, "drain")
    for change in (kill_leader, move):
        change(live, 2)
        rows = until(lambda: maybe_answer(live, "shards"), live.shard_records)["shards"]
        assert [row["draining"] for row in rows] == [True] * len(shards), rows
        until(lambda: is_refused(live, traced[2], Reason.SERVER_UNAVAILABLE), live.shard_records)
    order(live, "undrain")
    for name in banned:
        order(live, "unban", "--kind", "client", "--name", name)
    kill_leader(live, 2)
    for shard in shards:
        for name in (traced[shard], banned[shard]):
            until(lambda name=name: code_of(live, 1, name) == Reason.SUCCESS, live.shard_records)
