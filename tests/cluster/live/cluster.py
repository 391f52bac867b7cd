"""A cluster of `examples/cluster.py` in a thread of its own, and what a test may ask of it while it is harmed.

Who leads what is read from etcd, not from the nodes."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.cluster import Cluster, Member, NotStarted, ask_etcd, run, tree
from tests.cli.conftest import rumqd
from tests.cluster.live.network import Network
from tests.conformance.peer import Address

START_SECONDS_MAX = 90.0
# Small segments and a small memory: rolling, sealing and cold reads happen all the time. Retention never deletes: what
# is missing at the end is lost, also after a disk was full.
SETTINGS = (
    "log.segment_bytes_max=262144", "log.hot_bytes_max=262144", "log.retention=forever", "events.level=info",
)  # fmt: skip
NOT_LOOPBACK = ("auth.anonymous=yes", "cluster.insecure=true")  # namespaces that nobody else reaches


class LiveCluster:
    """network: a namespace for each member, instead of loopback; tmpfs_bytes: each node's disk, 0 for a directory"""

    def __init__(
        self, data: Path, *, nodes: int = 3, network: Network | None = None, tmpfs_bytes: int = 0,
        settings: Sequence[str] = (), restart_seconds: float = 2.0,
    ) -> None:  # fmt: skip
        self.network = network
        self._mounts = [data / f"n{number + 1}" for number in range(nodes)] if tmpfs_bytes else []
        self._tmpfs_bytes = tmpfs_bytes
        settings = [*SETTINGS, *([] if network is None else NOT_LOOPBACK), *settings]
        more = {} if network is None else {"place": network.place}
        self.cluster = Cluster(data, nodes, settings=settings, restart_seconds=restart_seconds, **more)
        self.restarts: list[dict[str, Any]] = []
        self._stopping, self._ready = threading.Event(), threading.Event()
        self._fault: BaseException | None = None
        # It starts the processes, and they die with it: so it lives as long as they.
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        """raises: NotStarted"""
        for folder in self._mounts:
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self._tmpfs_bytes}", "tmpfs", folder], check=True)
        self._keeper.start()
        self._ready.wait(START_SECONDS_MAX)
        if self._fault is not None or not self._ready.is_set():
            self.stop()
            raise NotStarted(str(self._fault or "not ready"))

    def _keep(self) -> None:
        try:
            run(self.cluster, self._stopping, self._told)
        except BaseException as fault:
            self._fault = fault
            self._ready.set()

    def _told(self, entry: dict[str, Any]) -> None:
        self._ready.set()
        if "restarted" in entry:
            self.restarts.append(entry["restarted"])

    def stop(self) -> None:
        self._stopping.set()
        if self._keeper.ident is not None:
            self._keeper.join(60)

    def remove(self) -> None:
        for folder in self._mounts:
            subprocess.run(["umount", "-l", folder], check=False)

    @property
    def nodes(self) -> list[Member]:
        return self.cluster.nodes

    @property
    def addresses(self) -> list[Address]:
        return [address_of(each) for each in self.nodes]

    def number_of(self, member: Member) -> int:
        return self.nodes.index(member)

    def shard_records(self) -> dict[int, dict[str, Any]]:
        """Each shard's record, as etcd has it."""
        prefix = b"/rumq/demo/shard/"
        found = {}
        for key, value in etcd_range(self.cluster.etcds, prefix):
            found[int(key.removeprefix(prefix))] = json.loads(value)
        return found

    def leaders(self) -> list[Member]:
        """The nodes that lead a shard, by etcd; all that live if nobody knows."""
        names = {record["leader"].partition("#")[0] for record in self.shard_records().values()}
        return [each for each in self.nodes if each.name in names and each.is_alive] or [
            each for each in self.nodes if each.is_alive
        ]

    def all_serve(self, seconds: float) -> list[str]:
        """Each (node, shard) by which a client still cannot publish and receive."""
        return [
            f"no round trip through {node.name} for a client of shard {shard}"
            for number, node in enumerate(self.nodes)
            for shard in range(self.cluster.shards)
            if not self.cluster.serves(number, shard, seconds)
        ]

    def doubted(self) -> list[str]:
        """Nodes whose `rumqd cluster status` tells of a copy that may lack what it had acknowledged."""
        asked = [rumqd("cluster", "status", "--data", str(node.data)) for node in self.nodes]
        return [
            f"{node.name}: {told.out[:300]}"
            for node, told in zip(self.nodes, asked, strict=True)
            if "cluster.copy_doubted" in told.out
        ]

    def last_events(self, member: Member, count: int = 15) -> list[str]:
        return member.last_words().splitlines()[-count:]


def address_of(member: Member) -> Address:
    host, port = member.address.split(":")
    return host, int(port)


def etcd_range(etcds: Sequence[Member], prefix: bytes) -> list[tuple[bytes, bytes]]:
    """All keys with that prefix and their values; nothing if no etcd answers."""
    end = prefix[:-1] + bytes([prefix[-1] + 1])
    body = {"key": base64.b64encode(prefix).decode(), "range_end": base64.b64encode(end).decode()}
    for each in etcds:
        if reply := ask_etcd(each.address, "/v3/kv/range", json.dumps(body).encode()):
            rows = reply.get("kvs", [])
            return [(base64.b64decode(row["key"]), base64.b64decode(row["value"])) for row in rows]
    return []


def signal_all(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def pause(member: Member) -> list[int]:
    """SIGSTOP to all processes of a node, those that are made meanwhile too; returns them."""
    stopped: list[int] = []
    while fresh := [pid for pid in tree(member.pid) if pid not in stopped]:
        signal_all(fresh, signal.SIGSTOP)
        stopped += fresh
    return stopped


def children(member: Member) -> list[int]:
    return tree(member.pid)[1:]


def maybe_shard_pid(member: Member, shard: int) -> int | None:
    """The process of a shard on a node, by what the node's agent says."""
    command = [sys.executable, "-m", "rumq", "cluster", "status", "--json", "--data", str(member.data)]
    done = subprocess.run(command, capture_output=True, timeout=20, check=False)
    if not done.stdout:
        return None
    found = json.loads(done.stdout)["processes"]
    return next((int(each["pid"]) for each in found if (each["role"], each["shard"]) == ("shard", shard)), None)


def is_reachable(address: Address) -> bool:
    try:
        socket.create_connection(address, 1).close()
    except OSError:
        return False
    return True
