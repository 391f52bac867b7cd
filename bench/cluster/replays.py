"""A replay at a node that does not lead its partition: bytes between nodes, records a second, and what publishers at
the leader notice. Clients read as fast as they are served; bytes are the kernel's, of connections
between nodes (ss(8))."""

import base64
import json
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from zlib import crc32

from bench.cluster.running import Members, Node, running_cluster
from bench.connections import BenchFault
from bench.measure.figures import Figures
from bench.peers.peer import environment
from bench.process import cpu_s

RECORDS = 200_000
PAYLOAD_BYTES = 100
SHARDS = 3
HOT_BYTES = 1 << 20  # of a partition: history is what is not in the leader's memory
TOPIC = "plant/7/temp"
REPLAY_SECONDS_MAX = 120.0
SENT = re.compile(r"bytes_sent:(\d+)")


def replays(runs: int, seconds: float) -> Figures:
    """seconds: of publishing for a percentile"""
    took: list[float] = []
    between: list[float] = []
    busy: list[float] = []
    of_leader: list[float] = []
    quiet: list[float] = []
    meanwhile: list[float] = []
    flags = ["--shards", str(SHARDS), "--restart-seconds", "3600", "--set", f"log.hot_bytes_max={HOT_BYTES}"]
    with running_cluster(*flags) as members:
        shard = crc32(TOPIC.encode()) % SHARDS
        leaders = leaders_of(members)
        leader = leaders[shard]
        near, home = next((node, other) for other, node in leaders.items() if node != leader)
        fill(leader)
        settle(members)
        for _ in range(runs):
            before = sent_between(members), cpu_of(members.nodes), cpu_of([leader])
            took.append(replay(near, client_of(home, "reader")))
            busy.append(cpu_of(members.nodes) - before[1])
            of_leader.append(cpu_of([leader]) - before[2])
            between.append(sent_between(members) - before[0])
        for _ in range(runs):
            quiet.append(p99_us(leader, client_of(shard, "meter"), seconds))
            with replaying(near, client_of(home, "again")):
                meanwhile.append(p99_us(leader, client_of(shard, "meter"), seconds))
    return {
        "records of a replay": RECORDS,
        "records/s": RECORDS / statistics.median(took),
        "bytes between nodes a record": statistics.median(between) / RECORDS,
        "CPU us a record, all nodes": 1e6 * statistics.median(busy) / RECORDS,
        "CPU us a record, the leader's node": 1e6 * statistics.median(of_leader) / RECORDS,
        "p99 of PUBACK at the leader, us": statistics.median(quiet),
        "p99 of PUBACK at the leader, replays meanwhile, us": statistics.median(meanwhile),
    }


def leaders_of(members: Members) -> dict[int, Node]:
    """Of each shard, as etcd has it. raises: BenchFault"""
    found: dict[int, Node] = {}
    for shard in range(SHARDS):
        body = json.dumps({"key": base64.b64encode(b"/rumq/demo/shard/%d" % shard).decode()}).encode()
        request = urllib.request.Request(members.etcd[0].client + "/v3/kv/range", body)
        with urllib.request.urlopen(request, timeout=5) as reply:
            rows = json.load(reply).get("kvs", [])
        names = [json.loads(base64.b64decode(row["value"]))["leader"].partition("#")[0] for row in rows]
        for node in members.nodes:
            if node.name in names:
                found[shard] = node
    if len(found) < SHARDS or len({node.name for node in found.values()}) == 1:
        raise BenchFault("expected every shard to have a leader, and not all of them at one node: run it again")
    return found


def cpu_of(nodes: Sequence[Node]) -> float:
    return sum(cpu_s(each.pid) for each in nodes)


def client_of(shard: int, name: str) -> str:
    """A client id that lives in that shard."""
    return next(f"{name}{n}" for n in range(1000) if crc32(f"{name}{n}".encode()) % SHARDS == shard)


def fill(node: Node) -> None:
    host, port = node.address
    command = [
        sys.executable, "-m", "rumq", "pub", "-h", host, "-p", str(port), TOPIC, "-m", "x" * PAYLOAD_BYTES, "-q", "1",
        "--repeat", str(RECORDS),
    ]  # fmt: skip
    subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL)


def settle(members: Members) -> None:
    """Until the nodes send each other beats only."""
    before = sent_between(members)
    for _ in range(100):
        time.sleep(0.5)
        now = sent_between(members)
        if now - before < 100_000:
            return
        before = now


def replay(node: Node, client_id: str) -> float:
    """Seconds for all records, at QoS 0: each is a packet of the same size."""
    packet_bytes = 2 + 2 + len(TOPIC) + PAYLOAD_BYTES
    wanted = f"$log/earliest/{TOPIC}".encode()
    subscribe = b"\0\1" + len(wanted).to_bytes(2, "big") + wanted + b"\0"
    buffer = bytearray(1 << 20)
    with connected(node, client_id) as sock:
        began = time.monotonic()
        sock.sendall(b"\x82" + bytes([len(subscribe)]) + subscribe)
        sock.recv(5, socket.MSG_WAITALL)
        left = RECORDS * packet_bytes
        while left > 0:
            size = sock.recv_into(buffer)
            if not size:
                raise BenchFault("a replay was ended")
            left -= size
        return time.monotonic() - began


@contextmanager
def connected(node: Node, client_id: str) -> Iterator[socket.socket]:
    """MQTT 3.1.1, a clean session."""
    name = client_id.encode()
    body = b"\0\4MQTT\4\2\0\x3c" + len(name).to_bytes(2, "big") + name
    with socket.create_connection(node.address, REPLAY_SECONDS_MAX) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(b"\x10" + bytes([len(body)]) + body)
        if sock.recv(4, socket.MSG_WAITALL)[3:] != b"\0":
            raise BenchFault(f"{node.name} refuses {client_id}")
        yield sock


@contextmanager
def replaying(node: Node, client_id: str) -> Iterator[None]:
    """One replay after the other."""
    over = threading.Event()

    def again() -> None:
        while not over.is_set():
            replay(node, client_id)

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def sent_between(members: Members) -> int:
    """Bytes that were sent so far over the connections between nodes that there are now, in both directions."""
    ports = set()
    for node in members.nodes:
        base = cluster_port(node)
        ports |= {str(base + 1 + shard) for shard in range(SHARDS)}
    said = subprocess.run(["ss", "-tinOH", "state", "established"], capture_output=True, text=True, check=True)
    total = 0
    for line in said.stdout.splitlines():
        words = line.split()
        if {words[2].rpartition(":")[2], words[3].rpartition(":")[2]} & ports:
            found = SENT.search(line)
            total += int(found[1]) if found else 0
    return total


def cluster_port(node: Node) -> int:
    said = subprocess.run(
        [sys.executable, "-m", "rumq", "cluster", "status", "--json", "--data", node.data],
        env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    mine = next(each for each in json.loads(said.stdout)["nodes"] if each["name"] == node.name)
    return int(mine["port"])


def p99_us(node: Node, client_id: str, seconds: float) -> float:
    """Of the time until PUBACK, one message at a time."""
    topic = TOPIC.encode()
    packet = len(topic).to_bytes(2, "big") + topic + b"\0\1" + b"y" * 50
    waits: list[float] = []
    with connected(node, client_id) as sock:
        end = time.monotonic() + seconds
        while (began := time.monotonic()) < end:
            sock.sendall(b"\x32" + bytes([len(packet)]) + packet)
            if len(sock.recv(4, socket.MSG_WAITALL)) < 4:
                raise BenchFault("the leader has ended the connection")
            waits.append(time.monotonic() - began)
            time.sleep(0.001)
    return 1e6 * statistics.quantiles(waits, n=100)[98]
