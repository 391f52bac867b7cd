"""A cluster that `examples/cluster.py` runs, for as long as a block lasts: its nodes, and which one leads the shard."""

import base64
import contextlib
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.connections import Address, BenchFault
from bench.peers.peer import environment, last_words
from bench.peers.rumq_cluster import EXAMPLE

START_S, STOP_S = 90.0, 40.0
LEADER_KEY = b"/rumq/demo/shard/0"


class Node(msgspec.Struct, frozen=True):
    name: str
    mqtt: str
    pid: int
    data: str

    @property
    def address(self) -> Address:
        host, _, port = self.mqtt.rpartition(":")
        return host, int(port)


class Etcd(msgspec.Struct, frozen=True):
    client: str
    pid: int


class Members(msgspec.Struct, frozen=True):
    """The first line that the example prints."""

    nodes: list[Node]
    etcd: list[Etcd]

    def leader(self) -> Node:
        """The node that leads shard 0, as etcd has it. raises: BenchFault"""
        body = json.dumps({"key": base64.b64encode(LEADER_KEY).decode()}).encode()
        request = urllib.request.Request(self.etcd[0].client + "/v3/kv/range", body)
        with urllib.request.urlopen(request, timeout=5) as reply:
            rows = json.load(reply).get("kvs", [])
        names = [json.loads(base64.b64decode(row["value"]))["leader"].partition("#")[0] for row in rows]
        for each in self.nodes:
            if each.name in names:
                return each
        raise BenchFault("shard 0 has no leader")

    def other(self) -> Node:
        """A node that does not lead."""
        leader = self.leader()
        return next(each for each in self.nodes if each != leader)


@contextlib.contextmanager
def running_cluster(*flags: str, shards: int = 1) -> Iterator[Members]:
    """Three nodes, three copies. flags: of `examples/cluster.py`. raises: BenchFault"""
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder:
        words = Path(folder) / "output"
        command = [sys.executable, str(EXAMPLE), "--shards", str(shards), "--data", f"{folder}/data", *flags]
        with words.open("wb") as sink:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sink, env=environment())
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise BenchFault(f"the cluster does not start: {last_words(words)}")
            yield msgspec.json.decode(line, type=Members)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()  # its children die with it
                process.wait()
            time.sleep(0.1)
