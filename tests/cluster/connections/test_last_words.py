"""What was written last leaves with the process, also where it is encrypted on its way."""

from __future__ import annotations

import socket
import ssl

import pytest

from rumq.cluster.connections.last_words import send_last_words
from rumq.cluster.connections.node_tls import NodeTls
from rumq.cluster.links.node_names import NodeNames
from rumq.net.connection import Connection
from tests.net.authorities import Authorities
from tests.net.conftest import authorities as authorities
from tests.net.site import Echo, Site, local

BIG = bytes(100_000)


def test_the_answer_of_a_leader_that_ends_gets_through_tls(authorities: Authorities) -> None:
    """As `rumqd cluster move` at another node: the order's answer is written, and the process ends."""
    site, listening = Site(), local()
    file = authorities.node("plant", "n1", "n2")
    tls = NodeTls(authorities.path(file), authorities.path(file, "key"), authorities.path("ca"), NodeNames("plant"))
    far = socket.socket(socket.AF_UNIX)
    far.connect(listening.getsockname())
    near, _ = listening.accept()
    far.setblocking(False)
    near.setblocking(False)
    taken: list[socket.socket] = []
    tls.accepted(site.pump, site.handshakes, near, "n2", lambda connection, sock, uris: taken.append(sock))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(authorities.path("ca"))
    context.load_cert_chain(authorities.path(file), authorities.path(file, "key"))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = context.wrap_bio(incoming, outgoing, server_hostname="localhost")

    def exchange() -> None:
        if data := outgoing.read():
            far.sendall(data)
        site.pump.turn(0.001)
        try:
            incoming.write(far.recv(1 << 20))
        except BlockingIOError:
            pass

    for _ in range(100):
        try:
            peer.do_handshake()
        except ssl.SSLWantReadError:
            pass
        exchange()
        if taken:
            break
    connection = Connection(site.pump, taken[0], "n2", 1 << 20)
    connection.link = Echo(connection)
    site.pump.add(connection)
    connection.write(BIG)
    connection.write(b"the last word")
    send_last_words(site.pump, 2.0)  # no turn comes any more
    got = b""
    while len(got) < len(BIG) + 13:
        try:
            data = far.recv(1 << 20)
        except BlockingIOError:
            break
        incoming.write(data)
        while True:
            try:
                got += peer.read(1 << 20)
            except ssl.SSLWantReadError:
                break
        send_last_words(site.pump, 0.1)
    assert got == BIG + b"the last word"
    far.close()
    listening.close()
    site.end()


@pytest.mark.parametrize("seconds", [0.05])
def test_who_does_not_read_is_not_waited_for_any_longer(seconds: float) -> None:
    site = Site()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    connection = Connection(site.pump, theirs, "n2", 1 << 24)
    connection.link = Echo(connection)
    site.pump.add(connection)
    connection.write(bytes(1 << 23))
    now = iter(range(1000))
    send_last_words(site.pump, seconds, clock=lambda: float(next(now)))
    assert connection.waits()
    ours.close()
    site.end()
