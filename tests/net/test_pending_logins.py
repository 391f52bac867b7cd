"""Somebody opens connections and never logs in: silent ones, ones that stop in the middle of a TLS handshake or of a
CONNECT, more than there is room for. Others come in meanwhile as if nothing were (CWE-400, slowloris)."""

import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rumq.auth.quota_holder import holder_of, holder_of_peer
from rumq.net.pending_logins import TURNS, LoginStage, PendingLogins
from tests.broker_process import Rumqd
from tests.conformance import wire
from tests.conformance.peer import Peer


class Somebody:
    def __init__(self, peer: str) -> None:
        self.peer = peer

    def __repr__(self) -> str:
        return self.peer


class Crowd:
    """Newcomers, and who of them had to go."""

    def __init__(self, **limits: int) -> None:
        self.turn = 0
        self.gone: list[Any] = []
        self.told: list[tuple[str, int]] = []
        self.pending_logins = PendingLogins(self.ends, lambda: self.turn)
        self.pending_logins.on_shed = lambda holder, shed: self.told.append((holder, shed))
        self.pending_logins.set_limits(limits.get("count", 0), limits.get("of_holder", 0), limits.get("size", 0))

    def ends(self, connection: Any, why: str) -> None:
        self.gone.append(connection)
        self.pending_logins.discard(connection)

    def comes(self, address: str, port: int = 1) -> Somebody:
        somebody = Somebody(f"{address}:{port}")
        self.turn += TURNS
        self.pending_logins.add(somebody)
        return somebody


def test_an_address_is_a_network_of_64_bits_in_ipv6() -> None:
    assert holder_of("2001:db8::1") == holder_of("2001:db8::2:0:0:1") == "2001:db8::/64"
    assert holder_of("2001:db8:0:1::1") != holder_of("2001:db8::1")
    assert holder_of("::ffff:10.0.0.1") == holder_of("10.0.0.1") == "10.0.0.1"
    assert holder_of("fe80::1%eth0") == "fe80::/64"
    assert holder_of_peer("2001:db8::1:1883") == "2001:db8::/64"
    assert holder_of_peer("unix:4711") == holder_of_peer("unix:12")


def test_the_oldest_of_the_largest_holder_goes() -> None:
    crowd = Crowd(count=5)
    alone = crowd.comes("10.0.0.9")
    many = [crowd.comes(f"2001:db8::{n:x}", 40_000 + n) for n in range(4)]
    assert not crowd.gone
    for n in range(3):
        crowd.comes(f"10.0.0.{n}")
    assert crowd.gone == many[:3] and crowd.told == [("2001:db8::/64", 1), ("2001:db8::/64", 2)]
    assert alone in crowd.pending_logins


def test_who_says_something_stays_before_who_is_silent_and_who_waits_for_us_before_both() -> None:
    crowd = Crowd(of_holder=3)
    owed, heard, silent = (crowd.comes("10.0.0.1", n) for n in range(3))
    crowd.pending_logins.set_state(heard, LoginStage.HEARD)
    crowd.pending_logins.set_state(owed, LoginStage.OWED)
    crowd.comes("10.0.0.1", 4)
    assert not crowd.gone, "who waits for us does not count"
    crowd.comes("10.0.0.1", 5)
    crowd.comes("10.0.0.1", 6)
    assert crowd.gone[0] is silent and heard not in crowd.gone and owed not in crowd.gone


def test_who_came_in_this_turn_has_not_been_read_from_and_stays() -> None:
    crowd = Crowd()
    first = crowd.comes("10.0.0.1")
    assert not crowd.pending_logins.make_room("too many")
    crowd.turn += TURNS
    assert crowd.pending_logins.make_room("too many") and crowd.gone == [first]


def test_who_has_logged_in_is_never_touched() -> None:
    crowd = Crowd(count=1)
    client = crowd.comes("10.0.0.1")
    crowd.pending_logins.discard(client)
    for n in range(5):
        crowd.comes("10.0.0.1", n)
    assert client not in crowd.gone and len(crowd.pending_logins) == 1


def test_bytes_kept_of_pending_logins_are_bounded_and_the_largest_holder_is_shed() -> None:
    crowd = Crowd(size=1000)
    greedy, modest = crowd.comes("10.0.0.1"), crowd.comes("10.0.0.2")
    assert crowd.pending_logins.keep_bytes(modest, 100) and crowd.pending_logins.keep_bytes(greedy, 900)
    assert crowd.pending_logins.keep_bytes(modest, 150)
    assert crowd.gone == [greedy] and crowd.pending_logins.bytes == 150
    assert not crowd.pending_logins.keep_bytes(modest, 2000), "it has the most itself"


STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 5), st.integers(0, 300)), max_size=80)


@given(STEPS)
def test_counts_agree_with_a_list_whatever_happens(steps: list[tuple[int, int, int, int]]) -> None:
    crowd = Crowd(count=12, of_holder=6, size=2000)
    here: list[Somebody] = []
    for kind, which, address, size in steps:
        if kind == 0 or not here:
            here.append(crowd.comes(f"10.0.0.{address}", len(here)))
        elif kind == 1:
            crowd.pending_logins.discard(here.pop(which % len(here)))
        elif kind == 2:
            crowd.pending_logins.set_state(here[which % len(here)], LoginStage(1 + which % 2))
        elif not crowd.pending_logins.keep_bytes(here[which % len(here)], size):
            crowd.pending_logins.discard(here.pop(which % len(here)))
        here = [each for each in here if each not in crowd.gone]
        assert len(crowd.pending_logins) == len(here) and all(each in crowd.pending_logins for each in here)
        assert crowd.pending_logins.bytes <= 2000
    for each in here:
        crowd.pending_logins.discard(each)
    assert len(crowd.pending_logins) == crowd.pending_logins.bytes == 0
    assert not crowd.pending_logins.make_room("nobody is left")


# A broker

COUNT = 300


def opened(broker: Rumqd, count: int, first: bytes = b"") -> list[socket.socket]:
    socks = []
    for _ in range(count):
        sock = socket.create_connection(broker.address, timeout=60)
        if first:
            try:
                sock.sendall(first)
            except ConnectionError:
                pass  # it had to go already
        socks.append(sock)
    return socks


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    from rumq.cli.main import main

    assert main(["certs", "dev", str(tmp_path / "certs")]) == 0
    return tmp_path / "certs"


def over_tls(broker: Rumqd, certificates: Path) -> int:
    """The first byte that a client gets that speaks TLS."""
    import ssl

    context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    sock = socket.create_connection(broker.address, timeout=60)
    with context.wrap_socket(sock, server_hostname="localhost") as tls:
        tls.sendall(wire.connect("right"))
        return tls.recv(1)[0]


HELLO = bytes.fromhex("16030100f8010000f40303") + bytes(40)


@pytest.mark.parametrize("first", [b"", HELLO], ids=["silent", "stopped"])
def test_connections_that_do_not_go_on_keep_no_handshake_out(tmp_path: Path, certificates: Path, first: bytes) -> None:
    """From the very address of the client that is right: from others it does not notice at all."""
    broker = Rumqd(
        tmp_path / "data", "--set", f"listener.tls_certificate={certificates}/server.pem",
        "--set", f"listener.tls_key={certificates}/server.key", "--set", "listener.tls_handshakes_max=50",
    )  # fmt: skip
    broker.start()
    try:
        socks = opened(broker, COUNT, first)
        assert over_tls(broker, certificates) == 0x20
        for sock in socks:
            sock.close()
    finally:
        broker.end()


def test_a_full_broker_takes_who_logs_in_for_who_does_not(tmp_path: Path) -> None:
    broker = Rumqd(tmp_path / "data", "--set", "listener.connections_max=20")
    broker.start()
    try:
        first = Peer(broker.address)
        first.connect("first")
        socks = opened(broker, 100)
        others = [Peer(broker.address) for _ in range(19)]
        assert [other.connect(f"c{n}").code for n, other in enumerate(others)] == [0] * 19
        assert first.publish("t", b"x", 1) in (0, 0x10)
        assert broker.event("connection.shed")["address"] == "127.0.0.1"
        assert Peer(broker.address).connect("one too many").code == 0x97
        assert broker.event("listener.overloaded")["connections"] == 20
        taken_over = Peer(broker.address).connect("first").code
        assert taken_over == 0, "who is in may come back"
        for sock in socks:
            sock.close()
    finally:
        broker.end()


def test_from_one_address_only_so_many_wait(tmp_path: Path) -> None:
    broker = Rumqd(tmp_path / "data", "--set", "auth.address_unauthenticated_connections_max=10")
    broker.start()
    try:
        socks = opened(broker, 30)
        for n in range(4):
            assert Peer(broker.address).connect(f"c{n}").code == 0
        for sock in socks[:20]:
            assert sock.recv(1) == b"", "the oldest go"
        socks[-1].sendall(wire.connect("late"))
        assert socks[-1].recv(1) == b"\x20"
    finally:
        broker.end()


def test_a_connect_has_its_own_bound_and_is_told_of_it(tmp_path: Path) -> None:
    broker = Rumqd(tmp_path / "data", "--set", "mqtt.connect_bytes_max=1000")
    broker.start()
    try:
        long = {"username": "u" * 500, "password": b"p" * 600}
        assert Peer(broker.address).connect("c", **long).code == 0x95
        head = wire.connect("c", **long)[:12]
        peer = Peer(broker.address)
        peer.send(head[:6])
        peer.send(head[6:])
        assert peer.receive().code == 0x95, "it is told before the rest has come"
        assert Peer(broker.address).connect("c", username="u" * 500).code == 0
        peer = Peer(broker.address)
        peer.connect("d")
        assert peer.publish("t", b"x" * 5000, 1) in (0, 0x10)
    finally:
        broker.end()


def test_unfinished_connects_keep_a_bounded_memory(tmp_path: Path) -> None:
    """120 KB of a CONNECT each, and nothing more: what is kept of them all is a MiB here."""
    limit = 1 << 20
    broker = Rumqd(tmp_path / "data", "--set", f"auth.unauthenticated_bytes_max={limit}")
    broker.start()
    try:
        first = Peer(broker.address)
        first.connect("first")
        before = broker.memory_bytes()
        whole = wire.connect("c", username="u" * 60_000, password=b"p" * 60_000)
        socks = opened(broker, COUNT, whole[:-1])
        assert first.publish("t", b"x", 1) in (0, 0x10)
        assert broker.memory_bytes() - before < 16 << 20, "with all of them it would be 34 MiB"
        assert broker.event("connection.shed")
        socks[-1].sendall(whole[-1:])
        assert socks[-1].recv(1) == b"\x20"
    finally:
        broker.end()
