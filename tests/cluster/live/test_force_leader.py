"""A majority of a shard's disks is lost: one copy is forced to lead, and the other one that lives is kept."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples.cluster import Cluster
from rumq.net.client_placement import home_of
from tests.cli.conftest import Ended as Done
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import address_of, signal_all
from tests.cluster.live.test_live import pytestmark as needs_etcd
from tests.conformance.peer import Ended, Peer
from tests.conformance.wire import Prop

pytestmark = needs_etcd
SHARDS = 3
CLIENT = next(f"c{number}" for number in range(99) if home_of(f"c{number}", SHARDS) == 0)
LASTING = [(Prop.SESSION_EXPIRY, 3600)]
SECONDS_MAX = 60.0


@pytest.mark.timeout(200)
def test_healthy_copies_follow_a_forced_leader(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 5, SHARDS)
    nodes = {node.name: node for node in cluster.nodes}

    def ask(name: str, *words: str, stdin: bytes = b"") -> Done:
        return rumqd("cluster", *words, "--data", str(nodes[name].data), stdin=stdin)

    def shards(name: str) -> list[Any]:
        found: list[Any] = json.loads(ask(name, "status", "--json").out)["shards"]
        return found

    def until(is_so: Callable[[], bool], seen: Callable[[], str]) -> None:
        limit = time.monotonic() + SECONDS_MAX
        while not is_so():
            assert time.monotonic() < limit, seen()
            time.sleep(0.1)

    try:
        cluster.start()
        have = [each.partition("#")[0] for each in shards("n1")[0]["replicas"]]
        first, second = (name for name in nodes if name not in have)
        for name in nodes:  # all: where five nodes form the cluster, each shard may begin on others
            assert ask("n1", "add", name).status == 0
        with Peer(address_of(nodes[first]), deadline_s=30) as peer:
            peer.connect(CLIENT, clean=False, properties=LASTING)
            peer.subscribe("t/#", qos=1)
            peer.publish("t/1", b"before", qos=1)
        signal_all([nodes[name].pid for name in have], 9)
        for name in have:
            shutil.rmtree(nodes[name].data, ignore_errors=True)
        until(
            lambda: ask(first, "status").out.count("3 of 5 replicas are gone") == SHARDS,
            lambda: ask(first, "status").out,
        )
        epochs = [each["epoch"] for each in shards(first)]
        for number in range(SHARDS):
            forced = ask(first, "force-leader", str(number), stdin=b"demo\n")
            assert forced.status == 0 and f"copies of {second}#" in forced.out, forced.out + forced.err

        def both_have_votes() -> bool:
            return all(
                sorted(each.partition("#")[0] for each in found["replicas"]) == sorted([first, second])
                and found["old_replicas"] is None
                for found in shards(first)
            )

        until(both_have_votes, lambda: ask(first, "status").out)
        assert [each["forced"] for each in shards(first)] == [epoch + 1 for epoch in epochs]

        def serves() -> bool:
            try:
                with Peer(address_of(nodes[second]), deadline_s=15) as peer:
                    if not peer.connect(CLIENT, clean=False, properties=LASTING).session_present:
                        return False
                    peer.publish("t/2", b"after", qos=1)
                    return {message.payload for message in peer.messages(2, ack=False)} == {
                        b"before",
                        b"after",
                    }
            except (Ended, OSError, AssertionError):
                return False

        until(serves, lambda: nodes[first].last_words())
        status = ask(first, "status")
        assert status.status == 1 and "shard 0 has 2 of 3 copies" in status.out, status.out
    finally:
        cluster.stop()
