"""An open loop: each message is due at its own time, carries that time, and is sent once whatever the socket does."""

import socket
import threading
import time
from array import array
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.load import PAYLOAD_BYTES, STAMP_BYTES
from tests.bench.frames import frame
from tests.kernel_forms import forms

each_form = pytest.mark.parametrize("kernel", forms("bench.kernels.pace"))
PERIOD_NS = 1_000
FOREVER_NS = 2**62


@each_form
def test_in_phase_all_publishers_are_due_at_the_beginning_of_each_period(kernel: ModuleType) -> None:
    schedule = kernel.Schedule(3, PERIOD_NS, True)
    assert [schedule.due_ns(k) for k in range(7)] == [0, 0, 0, 1_000, 1_000, 1_000, 2_000]
    assert [schedule.due_count(at) for at in (-1, 0, 999, 1_000, 2_000)] == [0, 3, 3, 6, 9]


@each_form
def test_evenly_spread_one_publisher_is_due_after_the_other(kernel: ModuleType) -> None:
    schedule = kernel.Schedule(4, PERIOD_NS, False)
    assert [schedule.due_ns(k) for k in range(6)] == [0, 250, 500, 750, 1_000, 1_250]
    assert [schedule.due_count(at) for at in (-1, 0, 249, 250, 999, 1_000)] == [0, 1, 1, 2, 4, 5]


@each_form
@given(
    publishers=st.integers(1, 50), more_ns=st.integers(0, 10_000), at=st.integers(0, 100_000),
    in_phase=st.booleans(),
)  # fmt: skip
def test_what_is_due_at_a_time_is_all_that_is_due_by_then(
    kernel: ModuleType, publishers: int, more_ns: int, at: int, in_phase: bool
) -> None:
    schedule = kernel.Schedule(publishers, publishers + more_ns, in_phase)
    count = schedule.due_count(at)
    assert schedule.due_ns(count - 1) <= at < schedule.due_ns(count)


@each_form
def test_a_period_shorter_than_a_nanosecond_a_publisher_is_refused(kernel: ModuleType) -> None:
    with pytest.raises(ValueError, match="period"):
        kernel.Schedule(4, 3, False)


def pacer(kernel: ModuleType, connections: list[socket.socket], late: int = 0) -> tuple[object, "array[int]"]:
    for connection in connections:
        connection.setblocking(False)
    count = len(connections)
    templates = b"".join(frame(p, 0, topic=b"b/%05d" % p) for p in range(count))
    sent, late_ns = array("q", bytes(8 * count)), array("Q", bytes(8 * late))
    descriptors = array("i", [connection.fileno() for connection in connections])
    schedule = kernel.Schedule(count, PERIOD_NS * count, False)
    return kernel.Pacer(schedule, descriptors, templates, PAYLOAD_BYTES, sent, late_ns), late_ns


def frames_of(publisher: int, messages: int, publishers: int, start_ns: int) -> bytes:
    period_ns = PERIOD_NS * publishers
    return b"".join(
        frame(
            publisher, sequence, topic=b"b/%05d" % publisher,
            sent_ns=start_ns + sequence * period_ns + publisher * PERIOD_NS,
        )
        for sequence in range(messages)
    )  # fmt: skip


@each_form
def test_messages_carry_the_time_they_were_due_at_however_late_they_go_out(kernel: ModuleType) -> None:
    """No coordinated omission: a message sent late is late by that much, not on time."""
    ends = [socket.socketpair() for _ in range(2)]
    one, late_ns = pacer(kernel, [ours for ours, _ in ends], late=6)
    start_ns = time.monotonic_ns() - 10**9
    one.run(0, 3, start_ns, FOREVER_NS)  # type: ignore[attr-defined]
    for publisher, (_, theirs) in enumerate(ends):
        assert theirs.recv(10_000) == frames_of(publisher, 3, 2, start_ns)
    assert one.late == 6  # type: ignore[attr-defined]
    assert all(late >= 10**9 - 6 * PERIOD_NS for late in late_ns)


@each_form
def test_a_round_whose_time_is_over_sends_nothing_more(kernel: ModuleType) -> None:
    ours, theirs = socket.socketpair()
    one, _ = pacer(kernel, [ours])
    one.run(0, 3, time.monotonic_ns(), 0)  # type: ignore[attr-defined]
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


@each_form
def test_a_full_socket_gets_every_byte_later_and_holds_no_other_up(kernel: ModuleType) -> None:
    """The first publisher's reader begins only once all of the second one's messages have arrived."""
    (slow, slow_reader), (ready, ready_reader) = small_pair(), socket.socketpair()
    messages = 2_000
    size = len(frame(0, 0))
    one, _ = pacer(kernel, [slow, ready])
    read: list[bytes] = []

    def read_one_after_the_other() -> None:
        for reader in (ready_reader, slow_reader):
            read.append(read_exactly(reader, messages * size))

    thread = threading.Thread(target=read_one_after_the_other)
    thread.start()
    start_ns = time.monotonic_ns() - 10**9
    one.run(0, messages, start_ns, FOREVER_NS)  # type: ignore[attr-defined]
    thread.join()
    assert read == [frames_of(publisher, messages, 2, start_ns) for publisher in (1, 0)]


@each_form
def test_a_frame_that_a_socket_takes_in_pieces_is_sent_once(kernel: ModuleType) -> None:
    """A frame many times as large as the socket's buffer."""
    ours, reader = small_pair()
    ours.setblocking(False)
    filler = bytes(range(256)) * 2_000
    templates = frame(0, 0, filler=filler, topic=b"b/00000")
    one = kernel.Pacer(
        kernel.Schedule(1, PERIOD_NS, True), array("i", [ours.fileno()]), templates,
        STAMP_BYTES + len(filler), array("q", [0]), array("Q"),
    )  # fmt: skip
    read: list[bytes] = []
    thread = threading.Thread(target=lambda: read.append(read_exactly(reader, 2 * len(templates))))
    thread.start()
    start_ns = time.monotonic_ns() - 10**9
    one.run(0, 2, start_ns, FOREVER_NS)
    thread.join()
    frames = (frame(0, s, sent_ns=start_ns + s * PERIOD_NS, filler=filler, topic=b"b/00000") for s in range(2))
    assert read == [b"".join(frames)]


@each_form
def test_a_lost_connection_is_an_error(kernel: ModuleType) -> None:
    ours, theirs = socket.socketpair()
    one, _ = pacer(kernel, [ours])
    theirs.close()
    with pytest.raises(OSError):
        one.run(0, 1, time.monotonic_ns(), FOREVER_NS)  # type: ignore[attr-defined]


def small_pair() -> tuple[socket.socket, socket.socket]:
    """Over TCP, where a full socket may take a part of a frame."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.socket()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        ours.connect(listener.getsockname())
        return ours, listener.accept()[0]


def read_exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (more := connection.recv(size - len(data))):
        data += more
    return bytes(data)
