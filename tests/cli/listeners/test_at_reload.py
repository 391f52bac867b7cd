"""CAS-19: listeners are added and removed at a reload; who came through the others notices nothing."""

import os
import signal
import socket
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers.peer import free_port
from tests import admin_questions
from tests.broker_process import Address, Rumqd
from tests.conformance.peer import Peer
from tests.conformance.websocket import WebSocket
from tests.conformance.wire import Prop
from tests.faults.kill.test_shards import shards_of
from tests.net.authorities import Authorities

CLIENTS = [f"c{n}" for n in range(6)]  # some live in each shard
LASTING = [(Prop.SESSION_EXPIRY, 3600)]
FIRST = "maximum_qos = 2"  # the flags of `Rumqd` give it an address: a loopback port
SERVER_UNAVAILABLE, ADMINISTRATIVE_ACTION = 0x88, 0x98


class Site:
    """A broker with its config.toml; each listener has a loopback address of its own, and any free port."""

    def __init__(self, folder: Path, shards: int, *listeners: str) -> None:
        self.folder, self.shards = folder, shards
        self.write(FIRST, *listeners)
        self.broker = Rumqd(folder / "data", "--config", str(folder / "config.toml"))
        self.broker.start()
        self._reloads = self._refusals = 0

    def write(self, *listeners: str, more: str = "") -> None:
        sections = [f"[[listener]]\n{each}\n" for each in listeners]
        (self.folder / "config.toml").write_text(
            "".join(sections) + f'[shards]\ncount = {self.shards}\n[auth]\nanonymous = "yes"\n{more}'
        )

    def reload(self, *listeners: str, more: str = "") -> dict[str, object]:
        """What the last shard says of it."""
        self.write(*listeners, more=more)
        self.broker.hang_up()
        self._reloads += self.shards
        self.broker.event("settings.reloaded", number=self._reloads)
        assert not self.broker.named("settings.refused")
        return self.broker.named("settings.reloaded")[-1]

    def refuse(self, *listeners: str, more: str = "") -> str:
        self.write(*listeners, more=more)
        self.broker.hang_up()
        self._refusals += 1
        return str(self.broker.event("settings.refused", number=self._refusals)["why"])

    def address(self, host: str, number: int = 1) -> Address:
        """Where the listener of this host is, as it was bound the `number`-th time."""
        found = [each for each in self.broker.named("listener.bound") if each["host"] == host]
        return Address(host, found[number - 1]["port"])

    def rows(self) -> dict[str, dict[str, int]]:
        """Listeners by name, as an operator is shown them."""
        names = ("ask.sock", "ask-1.sock")[: self.shards]
        replies = [admin_questions.ask_one(str(self.broker.data), each, {"ask": "listeners"}) for each in names]
        found: dict[str, dict[str, int]] = {}
        for row in [row for reply in replies for row in reply["listeners"]]:
            known = found.setdefault(row["name"], {**row, "connected": 0})
            assert known["listener"] == row["listener"], "it has one number in all shards"
            known["connected"] += row["connected"]
        return found


@pytest.fixture(params=[1, 2], ids=["one shard", "two shards"])
def shards(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[list[Site]]:
    """Those that the test has started; they end with it."""
    made: list[Site] = []
    yield made
    for each in made:
        each.broker.end()


@pytest.fixture
def site(tmp_path: Path, shards: int, sites: list[Site]) -> Site:
    sites.append(Site(tmp_path, shards))
    return sites[0]


def at(host: str, more: str = "") -> str:
    return f'host = "{host}"\nport = 0\n{more}'


def connected(address: Address, client_id: str, **fields: object) -> Peer:
    peer = Peer(address)
    assert peer.connect(client_id, **fields).code == 0
    return peer


def works(peer: Peer, topic: str = "works") -> None:
    """It subscribes, publishes and receives."""
    peer.subscribe(topic, qos=1)
    peer.publish(topic, b"x", 1)
    assert peer.payloads(1) == [b"x"]
    peer.unsubscribe(topic)


def is_closed(address: Address) -> bool:
    try:
        socket.create_connection(address, timeout=30).close()
    except ConnectionRefusedError:
        return True
    return False


class UnixPeer(Peer):
    def __init__(self, path: str) -> None:
        here, there = socket.socketpair()
        with here, there, socket.create_server(("127.0.0.1", 0)) as nobody:
            super().__init__(nobody.getsockname())
            self.socket.close()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(self.deadline_s)
        self.socket.connect(path)


class TlsPeer(Peer):
    def __init__(self, address: Address, authorities: Authorities) -> None:
        super().__init__(address)
        context = ssl.create_default_context(cafile=authorities.path("ca"))
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


def test_listeners_of_each_kind_are_added(site: Site, tmp_path: Path) -> None:
    authorities = Authorities(tmp_path)
    (tmp_path / "server.key").chmod(0o600)
    before = {each: connected(site.broker.address, each) for each in CLIENTS}
    path = str(tmp_path / "mqtt.sock")
    # In front of the first, whose place in the file is another one then.
    told = site.reload(
        FIRST, at("127.0.0.2"), f'path = "{path}"\npath_mode = "600"', at("127.0.0.3", 'protocol = "websocket"\n'),
        at("127.0.0.4", f'tls_certificate = "{authorities.path("server")}"\n'
           f'tls_key = "{authorities.path("server", "key")}"\n'),
    )  # fmt: skip
    assert (told["changed"], told["after_restart"]) == (["listener"], [])
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for client_id in CLIENTS:
        with connected(site.address("127.0.0.2"), f"tcp-{client_id}") as tcp, UnixPeer(path) as local:
            works(tcp)
            assert local.connect(f"unix-{client_id}").code == 0
            works(local)
        with TlsPeer(site.address("127.0.0.4"), authorities) as tls:
            assert tls.connect(f"tls-{client_id}").code == 0
            works(tls)
    browser = WebSocket(site.address("127.0.0.3"))
    assert browser.accepted
    browser.close()
    for peer in before.values():
        works(peer)
        peer.close()
    assert {row["listener"] for row in site.rows().values()} == {0, 1, 2, 3, 4}


def test_a_listener_that_is_removed_closes_its_clients_and_no_others(
    sites: list[Site], tmp_path: Path, shards: int
) -> None:
    site = Site(tmp_path, shards, at("127.0.0.2"), at("127.0.0.3", 'mount_point = "site/"\nmaximum_qos = 1'))
    sites.append(site)
    going = {each: connected(site.address("127.0.0.2"), each, properties=LASTING) for each in CLIENTS}
    for client_id, peer in going.items():
        peer.subscribe(f"to/{client_id}", qos=1)
    staying = {each: connected(site.address("127.0.0.3"), f"mounted-{each}") for each in CLIENTS}
    unknown = Peer(site.address("127.0.0.2"))  # has not logged in
    site.reload(FIRST, at("127.0.0.3", 'mount_point = "site/"\nmaximum_qos = 1'))
    for client_id, peer in going.items():
        peer.expect_refusal(ADMINISTRATIVE_ACTION)
        with connected(site.broker.address, client_id, clean=False, properties=LASTING) as again:
            assert again.connack.session_present
            again.publish(f"to/{client_id}", b"later", 1)
            assert again.payloads(1) == [b"later"]
    site.broker.event("listener.removed")
    assert is_closed(site.address("127.0.0.2"))
    assert unknown.connect("late").code == SERVER_UNAVAILABLE
    unknown.close()
    # The policy of a listener is its own, wherever it stands in the file.
    with connected(site.broker.address, "watcher") as watcher:
        watcher.subscribe("site/#", qos=0)
        for client_id, peer in staying.items():
            peer.publish(client_id, b"on", 1)
            assert watcher.message().topic == f"site/{client_id}"
        with connected(site.address("127.0.0.3"), "new") as new:
            new.publish("new", b"on", 1)
            assert watcher.message().topic == "site/new"
            assert dict(new.connack.properties)[Prop.MAXIMUM_QOS] == 1
        assert Prop.MAXIMUM_QOS not in dict(watcher.connack.properties)
    rows = site.rows()
    assert {name: row["listener"] for name, row in rows.items()} == {"127.0.0.1:0": 0, "127.0.0.3:0": 2}
    assert rows["127.0.0.3:0"]["connected"] == len(staying)


def test_a_number_is_not_used_again(site: Site) -> None:
    site.reload(FIRST, at("127.0.0.2"))
    site.reload(FIRST)
    site.reload(at("127.0.0.1"), at("127.0.0.3"), at("127.0.0.2"))
    rows = site.rows()
    assert {name: row["listener"] for name, row in rows.items()} == {
        "127.0.0.1:0": 0, "127.0.0.3:0": 2, "127.0.0.2:0": 3
    }  # fmt: skip
    assert is_closed(site.address("127.0.0.2", 1))
    for client_id in CLIENTS:
        with connected(site.address("127.0.0.2", 2), client_id) as peer:
            works(peer)


def test_a_port_that_is_taken_refuses_the_reload_as_a_whole(site: Site) -> None:
    peer = connected(site.broker.address, "before")
    with socket.create_server(("127.0.0.9", 0)) as other:
        port = other.getsockname()[1]
        why = site.refuse(
            "maximum_qos = 0",
            at("127.0.0.2"),
            f'host = "127.0.0.9"\nport = {port}',
            more="exact_refusals = false\n",
        )
    assert f"config.toml: listener number 3.port = {port}: cannot listen on 127.0.0.9:{port}" in why
    works(peer)
    with connected(site.broker.address, "after") as after:
        assert Prop.MAXIMUM_QOS not in dict(after.connack.properties)
    if found := [each for each in site.broker.named("listener.bound") if each["host"] == "127.0.0.2"]:
        assert is_closed(Address("127.0.0.2", found[0]["port"]))
    assert list(site.rows()) == ["127.0.0.1:0"]
    assert not site.broker.named("settings.reloaded", "listener.removed")
    peer.close()


def test_another_address_at_the_same_port_is_one_fewer_and_one_more(site: Site) -> None:
    """The new one covers the old one: both could not be bound side by side."""
    port = free_port()
    site.reload(FIRST, f'host = "127.0.0.7"\nport = {port}')
    old = connected(Address("127.0.0.7", port), "old")
    site.reload(FIRST, f'host = "0.0.0.0"\nport = {port}')
    old.expect_refusal(ADMINISTRATIVE_ACTION)
    for client_id in CLIENTS:
        for host in ("127.0.0.7", "127.0.0.8"):
            with connected(Address(host, port), client_id) as peer:
                works(peer)


def test_tls_is_switched_on_at_the_same_port(site: Site, tmp_path: Path) -> None:
    authorities = Authorities(tmp_path)
    (tmp_path / "server.key").chmod(0o600)
    port = free_port()
    plain = f'host = "127.0.0.7"\nport = {port}'
    tls = f'{plain}\ntls_certificate = "{authorities.path("server")}"\ntls_key = "{authorities.path("server", "key")}"'
    address = Address("127.0.0.7", port)
    site.reload(FIRST, plain)
    old = connected(address, "old")
    site.reload(FIRST, tls)
    old.expect_refusal(ADMINISTRATIVE_ACTION)
    for client_id in CLIENTS:
        with TlsPeer(address, authorities) as peer:
            assert peer.connect(client_id).code == 0
            works(peer)
    site.reload(FIRST, plain)
    for client_id in CLIENTS:
        with connected(address, client_id) as peer:
            works(peer)


def test_the_file_of_a_unix_socket_goes_with_its_listener(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "mqtt.sock"
    site.reload(FIRST, f'path = "{path}"')
    with UnixPeer(str(path)) as peer:
        assert peer.connect("local").code == 0
        site.reload(FIRST)
        peer.expect_refusal(ADMINISTRATIVE_ACTION)
    assert not path.exists()


def test_a_shard_that_is_started_again_has_the_listeners_in_force(sites: list[Site], tmp_path: Path) -> None:
    site = Site(tmp_path, 2, at("127.0.0.2"))
    sites.append(site)
    site.reload(FIRST, at("127.0.0.3"))
    for number, shard in enumerate(shards_of(site.broker.process.pid), 1):
        os.kill(shard, signal.SIGKILL)
        site.broker.event("shard.ready", number=number)
    assert is_closed(site.address("127.0.0.2"))
    for client_id in CLIENTS:
        with connected(site.address("127.0.0.3"), client_id) as peer:
            works(peer)
    site.reload(FIRST, at("127.0.0.3"), at("127.0.0.4"))
    assert {name: row["listener"] for name, row in site.rows().items()} == {
        "127.0.0.1:0": 0, "127.0.0.3:0": 2, "127.0.0.4:0": 3
    }  # fmt: skip
    for client_id in CLIENTS:
        with connected(site.address("127.0.0.4"), client_id) as peer:
            works(peer)
