"""Mutual TLS at a running broker, as config.toml sets it up: who comes in, as whom, and certificates that change."""

import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker_process import Rumqd
from tests.cli.conftest import rumqd
from tests.conformance.peer import Ended, Peer
from tests.net.authorities import Authorities

RULES = '[[rule]]\nallow = ["publish", "subscribe"]\ntopics = ["device/%u/#"]\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Authorities:
    folder = tmp_path_factory.mktemp("site")
    made = Authorities(folder)
    for path in folder.glob("*.key"):
        path.chmod(0o600)
    for kind in ("pem", "key"):
        shutil.copy2(folder / f"server.{kind}", folder / f"now.{kind}")
    (folder / "rules.toml").write_text(RULES)
    return made


@pytest.fixture(scope="module", params=[1, 2])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, site: Authorities
) -> Iterator[Rumqd]:
    folder = tmp_path_factory.mktemp("broker")
    config = folder / "config.toml"
    config.write_text(
        f'[listener]\ntls_certificate = "{site.path("now")}"\ntls_key = "{site.path("now", "key")}"\n'
        f'tls_authority = "{site.path("ca")}"\ntls_client_certificate = "required"\n'
        f'tls_revoked = "{site.path("crl")}"\n'
        f'[auth]\nrules_file = "{site.folder}/rules.toml"\n[shards]\ncount = {request.param}\n'
    )
    broker = Rumqd(folder / "data", "--config", str(config))
    broker.start()
    yield broker
    broker.end()


class TlsPeer(Peer):
    def __init__(self, broker: Rumqd, site: Authorities, name: str = "") -> None:
        super().__init__(broker.address)
        context = ssl.create_default_context(cafile=site.path("ca"))
        if name:
            context.load_cert_chain(site.path(name), site.path(name, "key"))
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")

    def server_name(self) -> str:
        assert isinstance(self.socket, ssl.SSLSocket)
        found = self.socket.getpeercert()
        assert found is not None
        names = [value for part in found["subject"] for key, value in part if key == "commonName"]  # type: ignore[misc]
        return str(names[0]) if names else ""


def test_a_certificate_is_the_user(broker: Rumqd, site: Authorities) -> None:
    """RQD-17: a device reaches its own topics alone."""
    for client_id in ("one", "two", "three", "four"):  # which live in either shard
        peer = TlsPeer(broker, site, "client")
        assert peer.connect(client_id).code == 0
        assert peer.subscribe("#") == [0]
        assert peer.publish("device/pump-7/x", b"own", 1) in (0, 0x10)
        assert peer.publish("device/pump-8/x", b"other's", 1) == 0x87
        assert peer.payloads(1) == [b"own"]
        peer.expect_silence()
        peer.leave()
    assert broker.event("client.connected")["user"] == "pump-7"


@pytest.mark.parametrize(
    ("name", "words"), [("", "certificate"), ("stranger", ""), ("expired", "expired"), ("revoked", "revoked")]
)
def test_nobody_else_comes_in(broker: Rumqd, site: Authorities, name: str, words: str) -> None:
    """CAS-1: before anything of the broker's was made for it."""
    before = len(broker.named("connection.refused"))
    with pytest.raises((ssl.SSLError, ConnectionError, Ended, TimeoutError)):
        TlsPeer(broker, site, name).connect("x")
    event = broker.event("connection.refused", number=before + 1)
    assert event["transport"] == "tls"
    assert words in event["why"]


def test_plain_on_the_tls_port_is_told(broker: Rumqd) -> None:
    """RQD-15; tests/limits has the other way round."""
    before = len(broker.named("connection.refused"))
    peer = Peer(broker.address)
    assert peer.connect("x").code >= 0x80
    assert "without TLS" in broker.event("connection.refused", number=before + 1)["why"]


def test_certificates_change_while_clients_stay(broker: Rumqd, site: Authorities) -> None:
    folder: Path = site.folder
    peer = TlsPeer(broker, site, "client")
    peer.connect("stays")
    peer.subscribe("device/pump-7/#")
    count = int(broker.event("broker.starting")["shards"])
    for name in ("server2", "server"):
        before = len(broker.named("settings.reloaded"))
        for kind in ("pem", "key"):
            shutil.copy2(folder / f"{name}.{kind}", folder / f"now.{kind}")
        broker.process.send_signal(signal.SIGHUP)
        told = broker.event("settings.reloaded", number=before + count)
        assert told["changed"] == ["listener.tls_certificate", "listener.tls_key"]
        assert told["after_restart"] == []
        fresh = TlsPeer(broker, site, "client")
        assert (fresh.server_name() == "the second one") == (name == "server2")
        assert fresh.connect("fresh").code == 0
        assert fresh.publish("device/pump-7/x", name.encode(), 1) in (0, 0x10)
        assert peer.payloads(1) == [name.encode()]


def test_certificates_that_change_are_used_without_a_reload(broker: Rumqd, site: Authorities) -> None:
    """D19: a renewal that nobody tells; a broken file keeps what is there, and is told."""
    folder: Path = site.folder
    count = int(broker.event("broker.starting")["shards"])
    peer = TlsPeer(broker, site, "client")
    peer.connect("stays")
    reloads = len(broker.named("settings.reloaded"))
    for file in ("now.pem", "now.key"):
        shutil.copy2(folder / f"server2.{file[4:]}", folder / file)
    broker.event("certificate.renewed", number=count)
    assert TlsPeer(broker, site, "client").server_name() == "the second one"
    (folder / "now.pem").write_text("nonsense")
    assert "no PEM certificate" in broker.event("certificate.refused", number=count)["why"]
    assert TlsPeer(broker, site, "client").server_name() == "the second one"
    shutil.copy2(folder / "server.pem", folder / "now.pem")
    shutil.copy2(folder / "server.key", folder / "now.key")
    broker.event("certificate.renewed", number=2 * count)
    assert TlsPeer(broker, site, "client").server_name() == ""
    assert len(broker.named("settings.reloaded")) == reloads
    assert peer.publish("device/pump-7/x", b"still here", 1) in (0, 0x10)


def test_a_client_that_says_nothing_holds_nobody_up(broker: Rumqd, site: Authorities) -> None:
    silent = [socket.create_connection(broker.address) for _ in range(20)]
    peer = TlsPeer(broker, site, "client")
    assert peer.connect("not-held-up").code == 0
    for sock in silent:
        sock.close()


def test_names_of_certificate_and_key_that_are_exchanged_are_told(site: Authorities) -> None:
    folder: Path = site.folder
    flags = (
        f"listener.tls_certificate={folder / 'server.key'}",
        f"listener.tls_key={folder / 'server.pem'}",
    )
    ended = rumqd("run", "--check", "--set", flags[0], "--set", flags[1])
    assert ended.status == 2
    assert "exchange the two names" in ended.err and "chmod" not in ended.err
