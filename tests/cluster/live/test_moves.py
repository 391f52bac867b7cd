"""Shards are moved again and again, and no client of three nodes notices: paho and mosquitto_sub, QoS 0, 1 and 2."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest

from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster
from tests.cluster.live.moving_clients import Crowd
from tests.net.authorities import Authorities
from tests.net.conftest import authorities as authorities

MOVES, MOVES_TLS = 6, 3  # each of three shards twice, and once
MOVES_LONG = int(os.environ.get("RUMQ_MOVES", "100"))
SETTLE_SECONDS = 20.0
# Events that say why a client noticed something.
TOLD = ("clients_moved", "crashed", "failed", "Traceback", "client.refused", "client.lost")

pytestmark = [
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
    pytest.mark.skipif(shutil.which("mosquitto_sub") is None, reason="mosquitto-clients is not installed"),
]


def move_shards(live: LiveCluster, count: int, seed: int) -> int:
    """Hand shards over, to a node that does not lead them. returns: how many times it was done"""
    chance = random.Random(seed)
    done = 0
    for turn in range(count):
        shard = turn % live.cluster.shards
        leader = live.shard_records()[shard]["leader"].partition("#")[0]
        to = chance.choice([node for node in live.nodes if node.name != leader])
        by = chance.choice(live.nodes)
        moved = rumqd("cluster", "move", str(shard), "--to", to.name, "--data", str(by.data))
        done += moved.status == 0
        if moved.status:
            print(moved.out, moved.err)
        time.sleep(chance.uniform(0.0, 0.3))
    return done


def check_moves(folder: Path, count: int, *settings: str) -> None:
    live = LiveCluster(folder / "cluster", settings=settings)
    live.start()
    crowd: Crowd | None = None
    try:
        assert not live.all_serve(30.0)
        crowd = Crowd(live.addresses, live.cluster.shards, folder)
        moved = move_shards(live, count, seed=20_271)
        found = crowd.finish(SETTLE_SECONDS)
        told = "\n".join(
            f"{node.name} {line}" for node in live.nodes for line in node.logs.read_text().splitlines()
            if any(each in line for each in TOLD) and '"dismissed":0' not in line
        )  # fmt: skip
        assert not found, "\n".join([*found, told])
        assert moved == count, told
    finally:
        if crowd is not None:
            crowd.stop()
        live.stop()


@pytest.mark.timeout(200)
def test_no_client_notices_that_shards_are_moved(tmp_path: Path) -> None:
    check_moves(tmp_path, MOVES)


@pytest.mark.long
@pytest.mark.timeout(200)
def test_nor_with_tls_between_nodes(tmp_path: Path, authorities: Authorities) -> None:
    """And the answer to each order comes, though the process that gives it ends."""
    node = authorities.node("demo", "n1", "n2", "n3")
    files = {"certificate": authorities.path(node), "key": authorities.path(node, "key")}
    tls = files | {"authority": authorities.path("ca")}
    check_moves(tmp_path, MOVES_TLS, *(f"cluster.tls_{name}={path}" for name, path in tls.items()))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_client_notices_a_hundred_moves(tmp_path: Path) -> None:
    check_moves(tmp_path, MOVES_LONG)
