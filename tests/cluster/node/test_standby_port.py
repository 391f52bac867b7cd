"""Strangers at the port of a shard that does not lead: what they hold is bounded, and a node is served meanwhile."""

import os
import resource
import selectors
import socket
import ssl
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rumq.cluster.links.greeting import TO_A_STRANGER, Greeting, GreetingRefused
from rumq.cluster.links.greeting_queue import GREETING_BYTES_MAX, GREETING_SECONDS_MAX, WAITING_BYTES_MAX
from rumq.cluster.node.link_handshake import LinkTls
from rumq.cluster.node.standby_port import NODE_LINKS_MAX, LinkOwner, Refusal, StandbyPort
from rumq.cluster.replication import messages as m
from rumq.net.frames import encoded
from tests.cluster.node.world import Peer
from tests.cluster.node_tls import context, link_tls
from tests.net.authorities import Authorities

TURNS_MAX = 5000
GREETING = Greeting("replica", "c", "n2#2", 0, 1)
EARLY = Greeting("client", "c", "n2#2", 0, 1)


class Port:
    """A port whose owner welcomes all nodes of cluster c; time is the test's. heard: what nodes have sent"""

    def __init__(self, tls: LinkTls | None = None, greetings_max: int = 1024) -> None:
        self.now, self.tls = 100.0, tls
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.number: int = self.listener.getsockname()[1]
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.heard: list[m.ReplicaMessage] = []
        self.lost: list[int] = []
        self.peers: list[Peer] = []
        self.socks: list[socket.socket] = []
        self.port = StandbyPort(
            self.listener, self.selector, tls, greetings_max,
            LinkOwner(
                self._welcome, lambda number, message, raw, now: self.heard.append(message),
                lambda number, now, ended_there: self.lost.append(number),
            ),
            tell=lambda name, **fields: self.events.append((name, fields)), clock=lambda: self.now,
        )  # fmt: skip

    def _welcome(self, message: m.ReplicaMessage, uris: tuple[str, ...]) -> Refusal | str:
        if not isinstance(message, Greeting) or message.cluster != "c":
            return Refusal("not of this cluster", TO_A_STRANGER)
        if message == EARLY:
            return Refusal("not the leader", "not the leader", is_ordinary=True)
        problem = self.tls.names.maybe_problem(uris, message.node) if self.tls is not None else None
        return Refusal(problem, TO_A_STRANGER) if problem else message.node

    def turn(self) -> None:
        for key, _ in self.selector.select(0.001):
            key.data()
        self.port.turn()
        for peer in self.peers:
            peer.turn()

    def until(self, is_so: Any) -> Any:
        for _ in range(TURNS_MAX):
            if found := is_so():
                return found
            self.turn()
        raise AssertionError(f"it never came; told: {self.events}")

    def peer(self, greeting: Any = GREETING, tls: LinkTls | None = None) -> Peer:
        self.peers.append(Peer(self.number, greeting, tls or self.tls))
        return self.peers[-1]

    def stranger(self, data: bytes = b"", address: str = "127.0.0.1") -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", self.number), source_address=(address, 0))
        sock.setblocking(False)
        self.socks.append(sock)
        if data:
            sock.send(data)
        return sock

    def serves(self) -> None:
        """A node is heard, whoever else is there."""
        self.heard.clear()
        peer = self.peer()
        peer.link.send(m.Promise(9))
        self.until(lambda: self.heard == [m.Promise(9)])

    def close(self) -> None:
        self.port.close()
        self.selector.close()
        for sock in (self.listener, *self.socks, *(peer.link.sock for peer in self.peers)):
            sock.close()


@pytest.fixture
def port() -> Iterator[Port]:
    made = Port()
    yield made
    made.close()


def rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def has_ended(sock: socket.socket) -> bool:
    try:
        while sock.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_a_silent_stranger_is_gone_after_its_time(port: Port) -> None:
    sock = port.stranger()
    port.until(lambda: len(port.port))
    assert port.port.next_deadline == port.now + GREETING_SECONDS_MAX
    port.now += GREETING_SECONDS_MAX - 0.1
    port.turn()
    assert len(port.port) == 1
    port.now += 0.2
    port.until(lambda: has_ended(sock))
    assert len(port.port) == 0 and port.port.next_deadline == float("inf")
    assert port.events[0][1]["why"] == "no greeting within 5 s"


def test_who_drips_bytes_gets_no_more_time(port: Port) -> None:
    sock = port.stranger()
    for byte in encoded(GREETING)[:16]:
        sock.send(bytes([byte]))
        port.turn()
        port.now += 0.3
    assert not has_ended(sock)
    port.now += 0.3
    port.until(lambda: has_ended(sock))


def test_a_node_that_has_greeted_may_be_silent(port: Port) -> None:
    port.serves()
    port.now += 1000
    port.turn()
    assert len(port.port) == 1 and not port.peers[0].link.closed


def test_a_large_first_frame_is_refused_by_its_length(port: Port) -> None:
    sock = port.stranger(struct.pack("<II", GREETING_BYTES_MAX + 1, 16))
    port.until(lambda: has_ended(sock))
    assert "a frame of 65537 bytes" in port.events[0][1]["why"]


def test_strangers_hold_a_bounded_number_of_bytes_together(port: Port) -> None:
    """Each sends a frame of 64 KiB but its last byte."""
    begun = struct.pack("<II", GREETING_BYTES_MAX, 16) + bytes(GREETING_BYTES_MAX - 8)
    before = rss()
    for _ in range(300):
        sock = port.stranger()
        sent = sock.send(begun)
        while sent < len(begun):
            port.turn()
            try:
                sent += sock.send(begun[sent:])
            except (BlockingIOError, ConnectionError):
                break
        port.turn()
    port.turn()
    assert rss() - before < 2 * WAITING_BYTES_MAX + (16 << 20)
    assert [fields for _, fields in port.events if fields["why"] == "too many bytes of greetings wait"]
    port.serves()


def test_a_flood_from_one_address_takes_no_place_of_another(port: Port) -> None:
    port.close()
    few = Port(greetings_max=8)
    node = few.stranger(address="127.0.0.2")
    few.until(lambda: len(few.port) == 1)
    for _ in range(100):
        few.stranger()
        few.turn()
    few.until(lambda: len(few.port) == 8)
    node.send(encoded(GREETING) + encoded(m.Promise(3)))
    few.until(lambda: few.heard == [m.Promise(3)])
    few.close()


def test_without_descriptors_strangers_make_room_for_a_node(port: Port) -> None:
    """Of what is free the log and what is dialled get some, too: see `greetings_max`."""
    taken = len(os.listdir("/proc/self/fd"))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    socks = [port.stranger() for _ in range(40)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken + 60, before[1]))
    try:
        port.until(lambda: not any(key.fd == port.listener.fileno() for key, _ in port.selector.select(0)))
        port.turn()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert any(has_ended(sock) for sock in socks)
    port.serves()


def test_a_greeting_of_another_cluster_is_refused_without_a_reason(port: Port) -> None:
    peer = port.peer(Greeting("replica", "other", "n9#9", 0, 5))
    port.until(lambda: peer.link.closed)
    assert peer.heard == [GreetingRefused(TO_A_STRANGER)] and port.events[0][1]["why"] == "not of this cluster"
    assert len(port.port) == 0


def test_what_stands_behind_a_greeting_takes_no_answer_away(port: Port) -> None:
    """A relayed client's CONNECT, of an edge that took this node for the leader: it is told so, and once."""
    refused = Greeting("client", "other", "n9#9", 0, 5)
    sock = port.stranger(encoded(refused) + b"\x10\x13\x00\x04MQTT" + bytes(11))
    port.until(lambda: port.events)
    assert sock.recv(1 << 16) == encoded(GreetingRefused(TO_A_STRANGER))
    assert has_ended(sock) and len(port.port) == 0
    assert [fields["why"] for _, fields in port.events] == ["not of this cluster"]


def test_what_is_no_frame_behind_a_good_greeting_ends_the_link(port: Port) -> None:
    sock = port.stranger(encoded(GREETING) + b"\xff" * 40)
    port.until(lambda: port.lost)
    assert has_ended(sock) and len(port.port) == 0


def test_a_node_that_asks_for_the_leader_too_early_is_refused_and_not_told_of(port: Port) -> None:
    """Whoever has a client for the next leader dials it until it is one."""
    peer = port.peer(EARLY)
    port.until(lambda: peer.link.closed)
    assert peer.heard == [GreetingRefused("not the leader")] and not port.events and len(port.port) == 0


def test_behind_its_greeting_a_node_may_send_more(port: Port) -> None:
    peer = port.peer()
    peer.link.send(m.Write(1, "p", "s", 0), (bytes(3 << 20),))
    port.until(lambda: port.heard)
    assert len(port.port) == 1


def test_of_a_nodes_many_links_the_oldest_makes_room(port: Port) -> None:
    for count in range(NODE_LINKS_MAX + 3):
        port.peer()
        port.until(lambda count=count: len(port.port) + len(port.lost) == count + 1)
        for _ in range(3):
            port.turn()
    assert len(port.port) == NODE_LINKS_MAX
    assert [peer.link.closed for peer in port.peers[:4]] == [True, True, True, False]


@pytest.mark.parametrize("who", ["device", "other node", "other cluster", "other authority", "no certificate"])
def test_with_tls_only_the_node_of_the_greeting_gets_in(authorities: Authorities, who: str) -> None:
    secure = Port(link_tls(authorities))
    files = {
        "device": "client", "other node": authorities.node("c", "n3"),
        "other cluster": authorities.node("c2", "n2"), "other authority": authorities.node("c", "n2", of_other=True),
        "no certificate": "",
    }  # fmt: skip
    dials = context(authorities, ssl.PROTOCOL_TLS_CLIENT, files[who])
    assert secure.tls is not None
    peer = secure.peer(tls=replace(secure.tls, client=dials))
    peer.link.send(m.Promise(9))
    secure.until(lambda: peer.link.closed)
    assert peer.heard in ([], [GreetingRefused(TO_A_STRANGER)]) and not secure.heard
    [(name, _)] = secure.events
    assert name == "connection.refused"
    secure.serves()
    secure.close()


def test_a_certificate_without_a_name_is_taken_where_a_setting_says_so(authorities: Authorities) -> None:
    secure = Port(link_tls(authorities, unnamed=True))
    assert secure.tls is not None
    before = replace(secure.tls, client=context(authorities, ssl.PROTOCOL_TLS_CLIENT, "server"))
    peer = secure.peer(tls=before)
    peer.link.send(m.Promise(9))
    secure.until(lambda: secure.heard)
    secure.close()


def test_silent_strangers_stop_no_tls_of_a_node(authorities: Authorities) -> None:
    secure = Port(link_tls(authorities), greetings_max=64)
    for _ in range(200):
        secure.stranger(b"\x16\x03\x01\x02\x00")
        secure.turn()
    secure.serves()
    secure.now += GREETING_SECONDS_MAX + 1
    secure.until(lambda: len(secure.port) == 1)
    secure.close()
