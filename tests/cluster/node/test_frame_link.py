"""A link of replication over a socket: what is sent arrives, in order, however little the socket takes."""

import errno
import socket
import tracemalloc
from collections.abc import Iterator

import pytest

from rumq.cluster.links.frame_outbox import OUTBOX_BYTES, Supply
from rumq.cluster.node.frame_link import FrameLink
from rumq.cluster.node.link_handshake import LinkTls
from rumq.cluster.replication import messages as m
from rumq.net.frames import encoded
from tests.cluster.node.world import tcp_pair
from tests.cluster.node_tls import link_tls
from tests.net.authorities import Authorities

BIG = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture(params=["plain", "tls"])
def tls(request: pytest.FixtureRequest, authorities: Authorities) -> LinkTls | None:
    return link_tls(authorities) if request.param == "tls" else None


@pytest.fixture
def links(tls: LinkTls | None) -> Iterator[tuple[FrameLink, FrameLink]]:
    """Who has dialled, and who was dialled."""
    near, far = tcp_pair()
    pair = FrameLink(near, tls, is_connecting=True), FrameLink(far, tls)
    yield pair
    for each in pair:
        each.close()


def carried(sender: FrameLink, receiver: FrameLink, count: int) -> list[tuple[m.ReplicaMessage, memoryview]]:
    """So many messages; each end is served in turn."""
    got: list[tuple[m.ReplicaMessage, memoryview]] = []
    for _ in range(100_000):
        sender.flush()
        got += receiver.read()
        receiver.flush()
        assert sender.read() == []
        if len(got) >= count or sender.closed or receiver.closed:
            return got
    raise AssertionError(f"{len(got)} of {count} came")


def test_reading_a_beat_makes_no_buffer_of_its_own() -> None:
    """An idle standby reads ten a second: none of these maps and unmaps memory."""
    near, far = tcp_pair()
    link = FrameLink(far)
    tracemalloc.start()
    try:
        for _ in range(3):
            near.send(encoded(m.Beat(1, {})))
            assert [message for message, _ in link.read()] == [m.Beat(1, {})]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000
    link.close()
    near.close()


def test_messages_and_raw_bytes_arrive_both_ways(links: tuple[FrameLink, FrameLink]) -> None:
    near, far = links
    assert near.has_output  # not yet connected
    near.send(m.Promise(3))
    near.send(m.Write(3, "main/g1/p0", "x.seg", 4096), (BIG, b"tail"))
    [(promise, _), (write, raw)] = carried(near, far, 2)
    assert promise == m.Promise(3) and isinstance(write, m.Write) and bytes(raw) == BIG + b"tail"
    assert not near.has_output
    far.send(m.Heard(3))
    assert carried(far, near, 1) == [(m.Heard(3), b"")]


def test_a_full_socket_is_not_waited_for(links: tuple[FrameLink, FrameLink]) -> None:
    near, far = links
    near.send(m.Heard(1))  # a small one is the first
    assert carried(near, far, 1)
    for at in range(24):
        near.send(m.Write(1, "p", "s", at), (BIG,))
    near.flush()
    assert near.has_output and not near.closed
    got = carried(near, far, 24)
    assert [each.position for each, _ in got] == list(range(24))  # type: ignore[union-attr]
    assert all(raw == BIG for _, raw in got)


def test_a_supply_is_drawn_as_the_socket_takes_it(links: tuple[FrameLink, FrameLink]) -> None:
    near, far = links
    drawn = 0

    def supply() -> Supply:
        nonlocal drawn
        for at in range(40):
            drawn += 1
            yield m.Write(1, "p", "s", at), (BIG,)
        yield m.Fetched(1, "p"), ()

    near.send(m.Heard(1))  # is before it
    near.outbox.supply = supply()
    near.flush()
    if not near.is_connecting:
        near.flush()
    assert drawn <= OUTBOX_BYTES // len(BIG) + 8  # not all of it is in memory
    got = [each for each, _ in carried(near, far, 42)]
    assert got[0] == m.Heard(1) and got[-1] == m.Fetched(1, "p") and drawn == 40
    assert near.outbox.supply is None and not near.has_output


def test_a_link_that_is_to_close_sends_everything_before(links: tuple[FrameLink, FrameLink]) -> None:
    near, far = links
    near.send(m.Heard(0))
    assert carried(near, far, 1)
    far.send(m.Outdated(7), (BIG,))
    far.closes = True
    got: list[m.ReplicaMessage] = []
    for _ in range(10_000):
        far.flush()
        got += [message for message, _ in near.read()]
        if near.closed:
            break
    assert far.closed and near.closed and got == [m.Outdated(7)]


def test_what_is_no_frame_ends_a_link() -> None:
    near, far = tcp_pair()
    link = FrameLink(far)
    near.sendall(b"GET / HTTP/1.1\r\n\r\n")
    while not link.closed:
        assert link.read() == []
    near.close()


def test_a_message_in_pieces_is_one_message() -> None:
    near, far = tcp_pair()
    link = FrameLink(far)
    data = encoded(m.Promise(9), (b"raw",))
    got: list[tuple[m.ReplicaMessage, memoryview]] = []
    for byte in data:
        assert got == []
        near.sendall(bytes([byte]))
        got += link.read()
    while not got:
        got += link.read()
    assert got == [(m.Promise(9), b"raw")]
    near.close()
    link.close()


def test_a_connection_that_is_refused_is_closed_by_the_first_flush() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(address)
    link = FrameLink(sock, is_connecting=True)
    link.send(m.Poll())
    for _ in range(1000):
        link.flush()
        if link.closed:
            break
    assert link.closed and link.fd >= 0


def test_a_flush_before_the_connection_is_there_changes_nothing(tls: LinkTls | None) -> None:
    """As where the other end is some time away, or nobody answers: connect(2) is in progress."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    address = listener.getsockname()
    waiting = [dialling(address) for _ in range(8)]  # behind the first ones nobody is answered
    near = waiting[-1]
    with pytest.raises(OSError, match=str(errno.ENOTCONN)):
        near.getpeername()
    link = FrameLink(near, tls, is_connecting=True)
    link.send(m.Promise(5))
    for _ in range(3):
        link.flush()
        assert link.is_connecting and link.has_output and not link.closed
    link.close()
    for each in (listener, *waiting):
        each.close()


def dialling(address: tuple[str, int]) -> socket.socket:
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(address)
    return sock


def test_a_dialled_link_sends_nothing_to_another_node(authorities: Authorities) -> None:
    for file in ("client", authorities.node("c", "n3"), authorities.node("other", "n2")):
        near, far = tcp_pair()
        dials = FrameLink(near, link_tls(authorities), is_connecting=True, node="n2#2")
        dialled = FrameLink(far, link_tls(authorities, file))
        dials.send(m.Promise(1))
        for _ in range(10_000):
            dials.flush()
            assert dialled.read() == []
            if dials.closed:
                break
        assert dials.handshake.is_impostor and "rumq://c/node/n2" in dials.why
        assert dialled.read() == [] and dialled.closed
    near, far = tcp_pair()
    good = FrameLink(near, link_tls(authorities), is_connecting=True, node="n2#2")
    dialled = FrameLink(far, link_tls(authorities, authorities.node("c", "n2")))
    good.send(m.Promise(1))
    assert carried(good, dialled, 1) and not good.handshake.is_impostor
    good.close()
    dialled.close()


def test_a_handshake_that_waits_for_the_other_end_wants_no_turns(authorities: Authorities) -> None:
    """A node that accepts and says nothing would keep its peer busy otherwise."""
    near, far = tcp_pair()
    dials = FrameLink(near, link_tls(authorities), is_connecting=True)
    dials.send(m.Promise(1))
    dials.flush()
    assert not dials.has_output and not dials.closed
    dials.close()
    far.close()


@pytest.mark.parametrize("who", ["stranger dials", "plain bytes"])
def test_a_stranger_gets_no_link(authorities: Authorities, who: str) -> None:
    near, far = tcp_pair()
    stranger = link_tls(authorities, "stranger", "ca") if who == "stranger dials" else None
    dials, dialled = FrameLink(near, stranger, is_connecting=True), FrameLink(far, link_tls(authorities))
    dials.send(m.Promise(1), (BIG,))
    for _ in range(10_000):
        dials.flush()
        assert dialled.read() == []
        if not dialled.closed:
            dialled.flush()
        dials.read()
        if dialled.closed:
            break
    assert dialled.closed
    dials.close()
