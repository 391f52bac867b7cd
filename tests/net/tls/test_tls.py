"""TLS through the pump: what is sent is what arrives, however it is cut. RFC 8446, RFC 5246."""

import socket
import ssl
from pathlib import Path

import pytest

from rumq.net.listening.listener import open_sockets
from rumq.net.listening.transports import Transports
from rumq.net.tls.tls import TlsServer
from rumq.net.tls.tls_options import TlsSettingsError
from tests.net.authorities import Authorities
from tests.net.conftest import Trusting
from tests.net.site import Site, TlsClient, cut_back_to_whole_messages

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
BIG = bytes(range(256)) * 4096  # 1 MiB, many records
OFFERED = 60  # of 250 KB: more than any socket takes


@pytest.fixture
def address(site: Site, authorities: Authorities) -> tuple[str, int]:
    return site.listen(Transports(tls=TlsServer(authorities.options())))  # type: ignore[no-any-return]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("cut", [0, 1])
def test_what_is_sent_is_what_arrives_however_it_is_cut(
    site: Site, address: tuple[str, int], trusting: Trusting, version: ssl.TLSVersion, cut: int
) -> None:
    client = TlsClient(site, address, trusting(version=version))
    client.shake_hands(cut)
    client.write(b"hello", cut)
    assert client.read(5) == b"hello"
    assert client.tls.version() == ("TLSv1.2" if version == ssl.TLSVersion.TLSv1_2 else "TLSv1.3")
    assert not site.events
    client.close()
    site.until(lambda: site.links[0].lost_why)


@pytest.mark.parametrize("version", VERSIONS)
def test_many_records_at_once_come_back_in_order(
    site: Site, address: tuple[str, int], trusting: Trusting, version: ssl.TLSVersion
) -> None:
    client = TlsClient(site, address, trusting(version=version))
    client.shake_hands()
    found = b""
    for at in range(0, len(BIG), 1 << 16):
        client.write(BIG[at : at + (1 << 16)])
        found += client.read(1 << 16)
    assert found == BIG


def test_small_records_by_the_thousand_come_back_in_order(
    site: Site, address: tuple[str, int], trusting: Trusting
) -> None:
    client = TlsClient(site, address, trusting())
    client.shake_hands()
    numbers = b"".join(n.to_bytes(2, "big") for n in range(6000))
    for at in range(0, len(numbers), 2):
        client.tls.write(numbers[at : at + 2])
    data = client.outgoing.read()
    sender = memoryview(data)
    while sender:
        try:
            sender = sender[client.sock.send(sender) :]
        except BlockingIOError:
            site.turn()
    assert client.read(len(numbers)) == numbers


def test_small_records_are_all_taken_by_a_broker_that_answers_nothing(
    site: Site, authorities: Authorities, trusting: Trusting
) -> None:
    """They are read a part in each turn, and no event of the socket comes for the rest."""

    client = TlsClient(site, site.listen(Transports(tls=TlsServer(authorities.options()))), trusting())
    client.shake_hands()
    site.until(lambda: site.links)
    site.links[0].is_silent = True
    for _ in range(6000):
        client.tls.write(b"x")
    client.out()  # more than is read at once
    site.until(lambda: len(site.links[0].got) == 6000)
    client.close()


def test_a_long_chain_reaches_a_client_with_small_buffers(
    site: Site, authorities: Authorities, trusting: Trusting, tmp_path: Path
) -> None:
    """The handshake's bytes wait for the socket like any others."""
    chain = tmp_path / "chain.pem"
    chain.write_bytes(Path(authorities.path("server")).read_bytes() + Path(authorities.path("ca")).read_bytes() * 100)
    (listening,) = open_sockets("127.0.0.1", 0, 10)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    transports = Transports(tls=TlsServer(authorities.options(certfile=str(chain))))
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(site.listen(transports, listening))
    client = TlsClient(site, sock, trusting())
    client.shake_hands()
    client.write(b"x")
    assert client.read(1) == b"x"
    client.close()


def test_data_behind_the_handshake_in_one_segment_is_not_lost(
    site: Site, address: tuple[str, int], trusting: Trusting
) -> None:
    client = TlsClient(site, address, trusting())
    with pytest.raises(ssl.SSLWantReadError):
        client.tls.do_handshake()
    client.out()
    while True:
        site.turn()
        client.into()
        try:
            client.tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            pass
    client.tls.write(b"at once")
    client.out()  # Finished and the first record together
    assert client.read(7) == b"at once"


def test_handshakes_of_many_clients_mixed_byte_by_byte_do_not_mix(
    site: Site, address: tuple[str, int], trusting: Trusting
) -> None:
    """All connections share OpenSSL's buffers: what one leaves there would be another's."""
    context = trusting()
    clients = [TlsClient(site, address, context) for _ in range(5)]
    open_ones: set[int] = set()
    for _ in range(3000):
        for index, client in enumerate(clients):
            client.into()
            if index not in open_ones:
                try:
                    client.tls.do_handshake()
                    open_ones.add(index)
                    client.tls.write(b"from %d" % index * 100)
                except ssl.SSLWantReadError:
                    pass
        waiting = [client.outgoing.read() for client in clients]
        for at in range(max(map(len, waiting))):
            for client, data in zip(clients, waiting, strict=True):
                if at < len(data):
                    client.sock.send(data[at : at + 1])
            site.pump.turn(0.0)
        if len(open_ones) == 5:
            break
        site.turn()
    for index, client in enumerate(clients):
        assert client.read(600) == b"from %d" % index * 100
    assert not site.events


def test_a_client_that_stops_reading_is_sent_the_rest_when_it_goes_on(
    site: Site, address: tuple[str, int], trusting: Trusting
) -> None:
    client = TlsClient(site, address, trusting())
    client.shake_hands()
    client.write(b"x")
    client.read(1)
    connection = site.links[0].transport
    for _ in range(8):
        connection.write(BIG)
        site.turn()
    assert connection.waits() and connection.blocked
    assert client.read(8 * len(BIG)) == BIG * 8
    site.turn()
    assert not connection.waits() and connection.room == 1 << 20


def test_of_messages_that_can_be_read_again_only_whole_ones_stay_in_the_outbox(
    site: Site, address: tuple[str, int], trusting: Trusting
) -> None:
    """The log still has them: the outbox of a client that does not read is cut back to a message's end."""
    client = TlsClient(site, address, trusting())
    client.shake_hands()
    client.write(b"x")
    client.read(1)
    connection = site.links[0].transport
    cut_back_to_whole_messages(site, connection, client.read, OFFERED)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_end_is_said(site: Site, address: tuple[str, int], trusting: Trusting, version: ssl.TLSVersion) -> None:
    """close_notify, RFC 8446 6.1: without it a client could not tell the end from a cut."""
    client = TlsClient(site, address, trusting(version=version))
    client.shake_hands()
    client.write(b"x")
    client.read(1)
    site.links[0].transport.close()
    assert client.step(lambda: client.tls.read(1)) == b""


def test_a_session_is_taken_up_with_its_ticket(site: Site, authorities: Authorities, trusting: Trusting) -> None:
    address = site.listen(Transports(tls=TlsServer(authorities.mutual())))
    context = trusting("client")
    client = TlsClient(site, address, context)
    client.shake_hands()
    client.write(b"x")
    client.read(1)
    again = TlsClient(site, address, context, client.tls.session)
    again.shake_hands()
    again.write(b"x")
    again.read(1)
    assert again.tls.session_reused
    assert site.links[1].transport.certificate == site.links[0].transport.certificate is not None


def test_the_protocol_is_agreed_upon(site: Site, address: tuple[str, int], trusting: Trusting) -> None:
    context = trusting()
    context.set_alpn_protocols(["h2", "mqtt"])
    client = TlsClient(site, address, context)
    client.shake_hands()
    assert client.tls.selected_alpn_protocol() == "mqtt"


def test_new_connections_use_new_files_and_others_stay(
    site: Site, authorities: Authorities, trusting: Trusting
) -> None:
    server = TlsServer(authorities.options())
    address = site.listen(Transports(tls=server))
    before = TlsClient(site, address, trusting())
    before.shake_hands()
    server.reload(authorities.options(certfile=authorities.path("server2"), keyfile=authorities.path("server2", "key")))
    after = TlsClient(site, address, trusting())
    after.shake_hands()
    shown = after.tls.getpeercert()
    assert shown is not None and (("commonName", "the second one"),) in shown["subject"]
    with pytest.raises(TlsSettingsError):
        server.reload(authorities.options(certfile="missing"))
    for client in (before, after):
        client.write(b"x")
        assert client.read(1) == b"x"


def test_a_changed_record_ends_one_client_in_words(site: Site, address: tuple[str, int], trusting: Trusting) -> None:
    client = TlsClient(site, address, trusting())
    client.shake_hands()
    client.tls.write(b"hello")
    data = bytearray(client.outgoing.read())
    data[-1] ^= 1
    client.sock.sendall(data)
    site.until(lambda: site.links and site.links[0].lost_why)
    assert site.links[0].lost_why == "a record that was changed on its way, or was never TLS"
    assert not site.pump.connections
