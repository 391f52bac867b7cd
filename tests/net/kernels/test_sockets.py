"""Receive and send on a descriptor, compiled and as Python: what the system says, as a number."""

import os
import select
import socket
from collections.abc import Iterator
from errno import EAGAIN, EBADF, ECONNRESET, EPIPE
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.kernel_forms import forms
from tests.net.socket_bytes import everything

kernels = pytest.mark.parametrize("kernel", forms("rumq.net.kernels.sockets"))
# Many bytes are received without the interpreter's lock.
bulks = pytest.mark.parametrize("bulk", [False, True], ids=["few", "many"])
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        yield near, far


def queued(*pieces: Any) -> list[tuple[Any, None]]:
    return [(piece, None) for piece in pieces]


@kernels
@bulks
def test_what_was_sent_is_received_behind_what_is_there(kernel: Any, pair: Pair, bulk: bool) -> None:
    near, far = pair
    far.send(b"hello")
    buffer = bytearray(b"abcdefgh")
    assert kernel.receive(near.fileno(), buffer, 2, bulk) == 5
    assert buffer == b"abhelloh"


@kernels
@bulks
def test_no_more_is_received_than_the_buffer_has_room_for(kernel: Any, pair: Pair, bulk: bool) -> None:
    near, far = pair
    far.send(b"hello")
    buffer = bytearray(b"abcd")
    assert kernel.receive(near.fileno(), buffer, 1, bulk) == 3 and buffer == b"ahel"
    assert kernel.receive(near.fileno(), memoryview(buffer), 0, bulk) == 2 and buffer == b"loel"


@kernels
@bulks
def test_nothing_to_receive_the_end_and_a_failure_are_told_apart(kernel: Any, pair: Pair, bulk: bool) -> None:
    near, far = pair
    buffer = bytearray(b"abcd")
    assert kernel.receive(near.fileno(), buffer, 0, bulk) == -EAGAIN
    far.shutdown(socket.SHUT_WR)
    assert kernel.receive(near.fileno(), buffer, 0, bulk) == 0
    near.send(b"never read")
    far.close()
    assert kernel.receive(near.fileno(), buffer, 0, bulk) == -ECONNRESET
    assert kernel.receive(-1, buffer, 0, bulk) == -EBADF
    assert buffer == b"abcd"
    buffer.append(0)  # nothing refers to it any more


@kernels
@given(
    pieces=st.lists(
        st.binary(max_size=9).flatmap(lambda data: st.sampled_from([data, bytearray(data), memoryview(data)])),
        min_size=1,
        max_size=70,
    )
)
@example(pieces=[b"%d" % n for n in range(63)])
@example(pieces=[b"%d" % n for n in range(64)])
@example(pieces=[b"%d" % n for n in range(65)])
def test_as_many_pieces_as_one_call_takes_are_sent_in_order(kernel: Any, pieces: list[Any]) -> None:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        taken = b"".join(pieces[: kernel.BUFFERS_MAX])
        assert kernel.BUFFERS_MAX == 64
        assert kernel.send(near.fileno(), queued(*pieces)) == len(taken)
        assert everything(far) == taken


@kernels
def test_part_of_a_piece_is_sent_as_it_is(kernel: Any, pair: Pair) -> None:
    near, far = pair
    whole = bytearray(range(100))
    assert kernel.send(near.fileno(), queued(memoryview(whole)[10:20], memoryview(bytes(whole))[50:])) == 60
    assert everything(far) == bytes([*range(10, 20), *range(50, 100)])


@kernels
def test_one_piece_is_sent_as_a_queue_of_one_would_be(kernel: Any, pair: Pair) -> None:
    near, far = pair
    for piece in (b"few", bytearray(b"few"), memoryview(bytes(9))[2:], os.urandom(5000), b""):
        assert kernel.send_one(near.fileno(), piece) == len(piece)
        assert everything(far) == bytes(piece)
    data, sent = os.urandom(1 << 22), 0
    while (more := kernel.send_one(near.fileno(), memoryview(data)[sent:])) >= 0:
        sent += more
    assert more == -EAGAIN and 0 < sent < len(data) and everything(far) == data[:sent]
    far.close()
    assert kernel.send_one(near.fileno(), b"x") == -EPIPE
    near.close()
    assert kernel.send_one(near.fileno(), b"x") == -EBADF


@kernels
def test_owners_of_pieces_are_not_looked_at(kernel: Any, pair: Pair) -> None:
    near, far = pair
    assert kernel.send(near.fileno(), [(b"a", (object(), 1)), (b"b", None)]) == 2
    assert everything(far) == b"ab"


@kernels
def test_a_full_socket_takes_a_part_and_then_nothing(kernel: Any, pair: Pair) -> None:
    near, far = pair
    data = os.urandom(1 << 22)
    first = kernel.send(near.fileno(), queued(data[:1000], data[1000:]))
    assert 1000 < first < len(data)
    sent = first
    while (more := kernel.send(near.fileno(), queued(data[sent:]))) >= 0:
        sent += more
    assert more == -EAGAIN and sent < len(data)
    assert everything(far) == data[:sent]
    assert kernel.send(near.fileno(), queued(data[sent:])) > 0


@kernels
def test_who_has_gone_cannot_be_sent_anything(kernel: Any, pair: Pair) -> None:
    near, far = pair
    far.close()
    assert kernel.send(near.fileno(), queued(b"a", b"b")) == -EPIPE
    assert kernel.send(-1, queued(b"a")) == -EBADF


@kernels
def test_a_connection_that_was_reset_is_told(kernel: Any) -> None:
    """Over TCP, with what nobody read: the client is gone without a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    with near, far:
        near.send(b"never read")
        far.recv(1, socket.MSG_PEEK)
        far.close()
        near.settimeout(20)
        with pytest.raises(ConnectionResetError):
            near.recv(1)  # waits until the reset is here, and takes the news of it
        assert kernel.send(near.fileno(), queued(b"a")) == -EPIPE


@kernels
def test_a_reset_is_what_sending_says_first(kernel: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
    with near, far:
        near.send(b"never read")
        far.recv(1, socket.MSG_PEEK)
        far.close()
        reset = select.poll()
        reset.register(near, 0)  # for errors alone
        assert reset.poll(20_000)
        assert kernel.send(near.fileno(), queued(b"a")) == -ECONNRESET


@kernels
@pytest.mark.parametrize("gone", [False, True])
def test_pieces_are_free_when_they_are_sent_or_refused(kernel: Any, pair: Pair, gone: bool) -> None:
    near, far = pair
    if gone:
        far.close()
    pieces = [bytearray(b"x") for _ in range(70)]
    assert (kernel.send(near.fileno(), queued(*pieces)) > 0) is not gone
    for piece in pieces:
        piece.append(0)  # BufferError while anything refers to it


@kernels
@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET6, "::ffff:127.0.0.1")]
)
def test_who_is_accepted_is_known_by_its_address(kernel: Any, family: int, host: str) -> None:
    """It does not block, is not inherited, and has the options of who listens: tcp(7)."""
    with socket.socket(family) as listener:
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind((host if "." not in host or family == socket.AF_INET else "::", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
        listener.listen()
        listener.setblocking(False)
        assert kernel.accept(listener.fileno()) == (-EAGAIN, "", 0)
        with socket.socket(family) as near:
            near.connect((host, listener.getsockname()[1]))
            fd, *peer = kernel.accept(listener.fileno())
            with socket.socket(fileno=fd) as far:
                assert peer == list(far.getpeername()[:2]) == list(near.getsockname()[:2])
                assert not far.get_inheritable() and not os.get_blocking(fd)
                assert far.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert kernel.accept(-1)[0] == -EBADF


@kernels
def test_a_unix_socket_has_no_address(kernel: Any, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as near:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        near.connect(str(tmp_path / "s"))
        fd, *peer = kernel.accept(listener.fileno())
        os.close(fd)
        assert peer == ["", 0]
