"""Handshakes: certificates, those that fail are told of in one event in words, and nobody else notices."""

import socket
import ssl
from itertools import pairwise
from pathlib import Path

import pytest

from rumq.mqtt.reasons import Reason
from rumq.net.listening.transports import Transports
from rumq.net.tls.tls import TlsServer
from tests.net.authorities import IDENTITIES, Authorities
from tests.net.conftest import Trusting
from tests.net.site import Site, TlsClient, dialled, local

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture
def address(site: Site, authorities: Authorities) -> tuple[str, int]:
    return site.listen(Transports(tls=TlsServer(authorities.options())))  # type: ignore[no-any-return]


def test_a_certificate_is_there_for_those_who_ask(site: Site, authorities: Authorities, trusting: Trusting) -> None:
    address = site.listen(Transports(tls=TlsServer(authorities.mutual())))
    client = TlsClient(site, address, trusting("client"))
    client.shake_hands()
    client.write(b"x")
    client.read(1)
    found = site.links[0].transport.certificate
    assert found.common_name == "pump-7"
    assert found.subject.startswith("CN=pump-7,OU=A\\+B,O=")
    assert (found.email, found.dns, found.uri) == (IDENTITIES[:1], IDENTITIES[1:], ())
    assert found.not_after > 4e9


@pytest.mark.parametrize(("wanted", "certificate"), [("optional", None), ("optional", "client"), ("none", "client")])
def test_a_certificate_need_not_be_given(
    site: Site, authorities: Authorities, trusting: Trusting, wanted: str, certificate: str | None
) -> None:
    address = site.listen(Transports(tls=TlsServer(authorities.mutual(client_certificates=wanted))))
    client = TlsClient(site, address, trusting(certificate))
    client.shake_hands()
    client.write(b"x")
    assert client.read(1) == b"x"
    is_known = site.links[0].transport.certificate is not None
    assert is_known == (wanted == "optional" and certificate is not None)


BAD = [
    ("expired", "the client's certificate (CN=late"),
    ("revoked", "the client's certificate (CN=lost"),
    ("stranger", "the client's certificate (CN=foe"),
]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("wanted", "certificate", "why"),
    [
        ("required", None, "no client certificate, and this listener asks for one"),
        *[(wanted, *bad) for wanted in ("required", "optional") for bad in BAD],
    ],
)
def test_a_certificate_that_is_no_good_is_refused_in_words(
    site: Site, authorities: Authorities, trusting: Trusting, version: ssl.TLSVersion, certificate: str | None,
    why: str, wanted: str,
) -> None:  # fmt: skip
    server = TlsServer(authorities.mutual(crlfile=authorities.path("crl"), client_certificates=wanted))
    address = site.listen(Transports(tls=server))
    good = TlsClient(site, address, trusting("client", version))
    good.shake_hands()
    bad = TlsClient(site, address, trusting(certificate, version))
    with pytest.raises(ssl.SSLError):
        bad.refused()
    said = site.why()
    assert said.startswith(why), said
    ends = {
        "expired": " expired on 2020-02-03 04:05:06Z",
        "revoked": " is revoked",
        "stranger": "O=Somebody else",
        None: "",
    }
    assert ends[certificate] in said
    good.write(b"still here")
    assert good.read(10) == b"still here"
    assert len(site.links) == 1


def test_a_revocation_list_is_wanted_for_each_authority(
    site: Site, authorities: Authorities, trusting: Trusting, tmp_path: Path
) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(Path(authorities.path("ca")).read_bytes() + Path(authorities.path("other-ca")).read_bytes())
    server = TlsServer(authorities.mutual(cafile=str(both), crlfile=authorities.path("crl")))
    client = TlsClient(site, site.listen(Transports(tls=server)), trusting("stranger"))
    with pytest.raises(ssl.SSLError):
        client.refused()
    assert "add it to crlfile" in site.why()


def test_a_client_that_does_not_trust_the_broker_is_told_of(
    site: Site, address: tuple[str, int], trusting: Trusting
) -> None:
    client = TlsClient(site, address, trusting(authority="other-ca"))
    with pytest.raises(ssl.SSLCertVerificationError):
        client.shake_hands()
    client.out()
    assert site.why() == "the client does not know the authority of this broker's certificate"


def test_an_old_version_is_refused_in_words(site: Site, authorities: Authorities, trusting: Trusting) -> None:
    address = site.listen(Transports(tls=TlsServer(authorities.options(version_min="1.3"))))
    client = TlsClient(site, address, trusting(version=ssl.TLSVersion.TLSv1_2))
    with pytest.raises(ssl.SSLError):
        client.shake_hands()
    assert site.why() == "a TLS version older than this listener takes"


@pytest.mark.parametrize(
    ("first", "why", "answer"),
    [
        (
            bytes.fromhex("100d00044d5154540402003c000161"),
            "an MQTT CONNECT without TLS",
            bytes.fromhex("20020003"),
        ),
        (
            bytes.fromhex("100e00044d5154540502003c00000161"),
            "an MQTT CONNECT without TLS",
            bytes.fromhex("201a0083171f0014") + b"this port speaks TLS",
        ),
        (bytes.fromhex("10"), "an MQTT CONNECT without TLS", b""),
        (b"GET / HTTP/1.1\r\n\r\n", "an HTTP request without TLS", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"SSH-2.0-x\r\n", "an SSH client", b""),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 3 4\r\n", "a PROXY protocol header", b""),
        (b"\0\1\2", "bytes that are no TLS (the first is 0x00)", b""),
        (b"\x16\x03\x01\xff\xff junk" + bytes(100), "TLS", b""),
        (b"\x16junkjunkjunkjunkjunk", "bytes that are no TLS", b""),
    ],
)
def test_who_does_not_speak_tls_is_told_so(
    site: Site, address: tuple[str, int], first: bytes, why: str, answer: bytes
) -> None:
    sock = socket.create_connection(address)
    sock.sendall(first)
    assert site.why().startswith(why) or why in site.events
    sock.settimeout(30)
    said = b""
    while more := sock.recv(1000):
        said += more
    assert said.startswith(answer) if answer else not said.startswith((b"HTTP", b"\x20"))
    assert not site.links


def test_who_comes_and_goes_without_a_byte_is_not_told_of(site: Site, address: tuple[str, int]) -> None:
    sock = socket.create_connection(address)
    site.until(lambda: len(site.handshakes))
    sock.close()
    site.until(lambda: not len(site.handshakes))
    assert not site.events and not site.pump.connections


def test_who_leaves_in_the_middle_is_told_of(site: Site, address: tuple[str, int], trusting: Trusting) -> None:
    client = TlsClient(site, address, trusting())
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.do_handshake()
    client.out()
    client.close()
    assert site.why() == "the client closed before the TLS handshake was over"


@pytest.mark.parametrize("sent", [1, 40, 5000])
def test_a_handshake_has_its_time(site: Site, authorities: Authorities, trusting: Trusting, sent: int) -> None:
    """A client that stops in the middle of it costs a descriptor for so long, and others nothing."""
    address = site.listen(Transports(tls=TlsServer(authorities.options())), local())
    stopped = TlsClient(site, address, trusting())
    with pytest.raises(ssl.SSLWantReadError):
        stopped.tls.do_handshake()
    stopped.sock.sendall(stopped.outgoing.read()[:sent])
    site.until(lambda: len(site.handshakes))
    site.turn(3)
    site.now += 9.9
    other = TlsClient(site, address, trusting())
    other.shake_hands()
    other.write(b"x")
    assert other.read(1) == b"x"
    assert not site.events
    site.now += 0.2
    assert site.why() == "not open within 10 s"
    assert len(site.pump.connections) == 1


def test_each_handshake_has_its_own_time(site: Site, address: tuple[str, int]) -> None:
    socks = []
    for count in (1, 2):
        socks.append(socket.create_connection(address))
        site.until(lambda wanted=count: len(site.handshakes) == wanted)  # type: ignore[misc]
        site.now += 0.5
    site.now += 1.6
    assert site.why() == "silent for 2.5 s"
    assert len(site.handshakes) == 1
    site.now += 0.3
    site.turn(2)
    assert len(site.handshakes) == 1
    site.now += 0.2
    assert site.why() == "silent for 2.5 s"
    for sock in socks:
        sock.close()


def test_a_stop_ends_handshakes_and_says_nothing(site: Site, authorities: Authorities, trusting: Trusting) -> None:
    address = site.listen(Transports(tls=TlsServer(authorities.options())), local())
    client = TlsClient(site, address, trusting())
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.do_handshake()
    client.sock.sendall(client.outgoing.read()[:20])
    site.until(lambda: len(site.handshakes))
    site.turn(2)
    for connection in list(site.pump.connections.values()):
        connection.link.dismiss(Reason.SERVER_SHUTTING_DOWN, "the broker is stopping")
    site.turn()
    assert not site.pump.connections and not len(site.handshakes) and not site.events
    client.close()


@pytest.mark.parametrize("leaves", [True, False])
def test_more_handshakes_than_allowed_wait_until_one_leaves_or_has_stopped(
    authorities: Authorities, trusting: Trusting, leaves: bool
) -> None:
    site = Site(handshakes_max=4)  # of one address: half of them
    address = site.listen(Transports(tls=TlsServer(authorities.options())), local())
    slow = [TlsClient(site, address, trusting()) for _ in range(2)]
    for each in slow:
        with pytest.raises(ssl.SSLWantReadError):
            each.tls.do_handshake()
        each.sock.sendall(each.outgoing.read()[:20])
    site.turn(5)
    waiting = TlsClient(site, address, trusting())
    with pytest.raises(ssl.SSLWantReadError):
        waiting.tls.do_handshake()
    waiting.out()
    site.turn(5)
    waiting.into()
    assert not waiting.incoming.pending and len(site.pump.connections) == 3
    if leaves:
        slow[0].close()
    else:
        site.now += 0.6
    waiting.shake_hands()
    waiting.write(b"x")
    assert waiting.read(1) == b"x"
    why = (
        "the client closed before the TLS handshake was over"
        if leaves
        else "stopped or dripped in the middle while others waited"
    )
    assert site.why() == why
    slow[1].close()
    site.end()


HELLO = bytes.fromhex("16030100f8010000f40303") + bytes(40)  # the beginning of one


@pytest.mark.parametrize(("first", "tenths_max"), [(b"", 0), (HELLO, 30)], ids=["silent", "stopped"])
def test_a_crowd_that_does_not_go_on_keeps_a_handshake_out_for_half_a_second_a_round(
    authorities: Authorities, trusting: Trusting, first: bytes, tenths_max: int
) -> None:
    """Six rounds of five that have stopped, all of the address of the client that goes on; silent ones take no place.

    Without an end to those that stop each round would take 10 s."""
    site = Site(handshakes_max=10)  # of one address: half of them
    address = site.listen(Transports(tls=TlsServer(authorities.options())), local())
    crowd = [dialled(address) for _ in range(30)]
    for sock in crowd:
        sock.sendall(first)
    site.until(lambda: len(site.handshakes) == 30)
    site.turn(2)
    client, tenths, is_open = TlsClient(site, address, trusting()), 0, False
    while not is_open:
        for _ in range(5):  # more turns than a handshake takes
            try:
                client.tls.do_handshake()
                is_open = True
            except ssl.SSLWantReadError:
                pass
            client.out()
            site.turn()
            client.into()
        if not is_open:
            site.now += 0.1
            tenths += 1
        assert tenths <= tenths_max
    for sock in crowd:
        sock.close()
    client.close()
    site.end()


def test_a_turn_takes_a_bounded_part_of_the_handshakes(authorities: Authorities, trusting: Trusting) -> None:
    """With a clock that moves 1.5 ms at each look, two steps fill a turn's part."""
    site = Site()
    ticks = iter(range(10**9))  # of 1.5 ms
    site.handshakes.clock = lambda: next(ticks) * 0.0015
    address = site.listen(Transports(tls=TlsServer(authorities.options())), local())
    clients = [TlsClient(site, address, trusting()) for _ in range(6)]
    for client in clients:
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.do_handshake()
        client.out()
    answered = []
    for _ in range(6):
        site.turn()
        for client in clients:
            client.into()
        answered.append(sum(client.incoming.pending > 0 for client in clients))
    assert answered[-1] == 6 and answered[0] == 0  # the first accepted them
    assert max(b - a for a, b in pairwise(answered)) == 2
    site.end()
