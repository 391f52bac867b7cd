"""Strangers at the ports for other nodes of a cluster of real processes, with TLS between nodes and without.

A stranger: whoever reaches the port; a device with a certificate of the same authority; a node of another cluster. None
is told anything, none makes a process grow, and clients are served meanwhile. Some 40 s. CWE-770, CWE-295, CWE-200"""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import msgspec
import pytest

from rumq.cluster.links.greeting import TO_A_STRANGER, Answer, Greeting, GreetingRefused
from rumq.cluster.replication import messages as m
from rumq.net.client_placement import home_of
from rumq.net.frames import MessageReader, encoded
from tests.cli.conftest import rumqd
from tests.cluster.live.cluster import LiveCluster, address_of
from tests.cluster.node_tls import context
from tests.conformance.peer import Peer
from tests.net.authorities import Authorities
from tests.net.conftest import authorities as authorities

GROWTH_BYTES_MAX = 24 << 20  # of a process under all of it: three strangers with one frame each took 360 MiB
SECONDS_MAX = 40.0
NAMES = ("n1", "n2", "n3")
FORGED_EPOCH = 1 << 40

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(
        shutil.which("etcd", path=os.environ["PATH"] + ":/usr/sbin") is None, reason="etcd is not installed"
    ),
]


class Site:
    """A cluster, and its ports of shard 0. secure: nodes speak TLS"""

    def __init__(self, live: LiveCluster, authorities: Authorities, *, secure: bool) -> None:
        self.live, self.authorities, self.secure = live, authorities, secure

    def status(self) -> dict[str, Any]:
        for node in self.live.nodes:
            done = rumqd("cluster", "status", "--json", "--data", str(node.data))
            if done.out and node.is_alive:
                found: dict[str, Any] = json.loads(done.out)
                return found
        raise AssertionError("no node answers")

    def ports(self) -> dict[str, tuple[str, int]]:
        """By node: of its process of shard 0."""
        flags = {
            node.name: dict(each.split("=", 1) for each in node.command if "=" in each) for node in self.live.nodes
        }
        return {name: (found["cluster.host"], int(found["cluster.port"]) + 1) for name, found in flags.items()}

    def pids(self) -> dict[str, int]:
        """By node: of its process of shard 0."""
        found = {}
        for node in self.live.nodes:
            rows = json.loads(rumqd("cluster", "status", "--json", "--data", str(node.data)).out)["processes"]
            found[node.name] = next(row["pid"] for row in rows if (row["role"], row["shard"]) == ("shard", 0))
        return found

    def leader(self) -> str:
        name, _, _ = self.live.shard_records()[0]["leader"].partition("#")
        return str(name)

    def publishes(self, seconds: float = SECONDS_MAX) -> None:
        """A client of shard 0 is served through every node that lives."""
        name = next(f"c{n}" for n in range(99) if home_of(f"c{n}", 3) == 0)
        for node in self.live.nodes:
            if node.is_alive:
                until(lambda node=node: acknowledged(address_of(node), name), seconds)

    def told(self, event: str) -> list[dict[str, Any]]:
        lines = [line for node in self.live.nodes for line in node.logs.read_text().splitlines() if event in line]
        return [found for line in lines if (found := json.loads(line))["event"] == event]


def acknowledged(address: tuple[str, int], name: str) -> bool:
    try:
        with Peer(address) as peer:
            if peer.connect(name).code != 0:
                return False
            peer.publish("t", b"x", qos=1)  # until its PUBACK
            return True
    except (OSError, EOFError, AssertionError):
        return False


def until(is_so: Callable[[], Any], seconds: float = SECONDS_MAX) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := is_so():
            return found
    raise AssertionError("it never came")


def rss(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.fixture(scope="module", params=["plain", "tls"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, authorities: Authorities
) -> Iterator[Site]:
    live = LiveCluster(tmp_path_factory.mktemp("strangers") / "cluster")
    if request.param == "tls":
        for node in live.nodes:
            file = authorities.node("demo", node.name)
            for key, path in (
                ("certificate", authorities.path(file)), ("key", authorities.path(file, "key")),
                ("authority", authorities.path("ca")),
            ):  # fmt: skip
                node.command += ["--set", f"cluster.tls_{key}={path}"]
    try:
        live.start()
        yield Site(live, authorities, secure=request.param == "tls")
    finally:
        live.stop()
        live.remove()


def connected(site: Site, address: tuple[str, int], file: str = "") -> socket.socket:
    """A stranger's connection; with TLS and a certificate if nodes have it. raises: OSError"""
    sock = socket.create_connection(address, 5)
    sock.settimeout(10)
    if not site.secure or not file:
        return sock
    return context(site.authorities, ssl.PROTOCOL_TLS_CLIENT, file).wrap_socket(sock)


def answers(sock: socket.socket) -> list[Answer]:
    """Until the other end has closed."""
    frames: MessageReader[Answer] = MessageReader(Answer)
    found: list[Answer] = []
    try:
        while data := sock.recv(1 << 16):
            found += [message for message, _ in frames.feed(data)]
    except (ConnectionError, ssl.SSLError):
        pass
    return found


def assert_not_believed(site: Site) -> None:
    """Nobody was deposed by the forged promise; a busy machine may depose a leader by an honest one."""
    assert not [each for each in site.told("cluster.deposed") if str(FORGED_EPOCH) in each["why"]]


def test_a_stranger_is_told_nothing_at_any_door(site: Site) -> None:
    """Nor a device with a certificate of the same authority, which knows the cluster's id besides."""
    cluster = site.status()["cluster"]
    assert len(cluster) == 16
    promise = encoded(m.Promise(FORGED_EPOCH))
    for kind in ("replica", "bus", "client", "ask", "admin", "other"):
        for address in site.ports().values():
            for claims in ("0123456789abcdef", cluster) if site.secure else ("0123456789abcdef",):
                with closing(connected(site, address, "client")) as sock:
                    sock.sendall(encoded(Greeting(kind, claims, "n1#00000000", 0, 1, sender=2)) + promise)
                    assert answers(sock) in ([GreetingRefused(TO_A_STRANGER)], [])
    whys = {each["why"] for each in site.told("connection.refused")}
    assert [why for why in whys if ("names no node" if site.secure else "not 0123456789abcdef") in why]
    assert_not_believed(site)
    site.publishes()


def test_a_node_of_another_cluster_or_name_is_refused(site: Site) -> None:
    if not site.secure:
        pytest.skip("in plain the cluster's id is all that there is")
    cluster = site.status()["cluster"]
    for file in (site.authorities.node("other", "n1"), site.authorities.node("demo", "n9")):
        for address in site.ports().values():
            with closing(connected(site, address, file)) as sock:
                greeting = Greeting("replica", cluster, "n1#00000000", 0, 1)
                sock.sendall(encoded(greeting) + encoded(m.Promise(FORGED_EPOCH)))
                assert answers(sock) in ([GreetingRefused(TO_A_STRANGER)], [])
    assert_not_believed(site)
    site.publishes()


def test_silent_and_dripping_strangers_and_large_frames_take_a_bounded_part(site: Site) -> None:
    pids, ports = site.pids(), site.ports()
    before = {name: (rss(pid), descriptors(pid)) for name, pid in pids.items()}
    large = struct.pack("<II", (1 << 28) - 1, 100) + bytes(1 << 20)
    begun = struct.pack("<II", 1 << 16, 100) + bytes((1 << 16) - 9)
    nested = b"\x9c" + msgspec.msgpack.encode(Greeting("replica", "c", "n1#0", 0, 1))[1:] + b"\x91" * 60_000
    deep = struct.pack("<II", 4 + len(nested), len(nested)) + nested
    with ExitStack() as held:
        for name in NAMES:
            for data in (b"", deep, large, begun, b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\n\r\n") * 50:
                sock = held.enter_context(closing(socket.create_connection(ports[name], 5)))
                sock.setblocking(False)
                try:
                    sock.send(data)
                except (BlockingIOError, ConnectionError):
                    pass
        site.publishes()
        most = {name: rss(pid) - before[name][0] for name, pid in pids.items()}
        assert max(most.values()) < GROWTH_BYTES_MAX, most
        for name, pid in pids.items():  # the deadline passes, whatever else is due
            until(lambda name=name, pid=pid: descriptors(pid) <= before[name][1] + 20)
    assert site.pids() == pids
    site.publishes()


def test_a_leader_that_dies_under_a_flood_is_replaced(site: Site) -> None:
    """Twice as many connections as wait at most, at the standbys, which dial each other to agree."""
    gone = site.leader()
    site.live.cluster.held.add(gone)
    wanted = {name: address for name, address in site.ports().items() if name != gone}
    with ExitStack() as held:
        for address in wanted.values():
            for _ in range(2500):
                sock = held.enter_context(closing(socket.socket()))
                sock.setblocking(False)
                sock.connect_ex(address)
        member = site.live.cluster.member(gone)
        member.stop(9)
        until(lambda: not member.is_alive)
        site.publishes()
        assert site.leader() != gone
    site.live.cluster.held.discard(gone)
    until(lambda: member.is_alive and not site.live.all_serve(5.0))
