"""An open loop at QoS 1: each message has its packet id, each PUBACK is counted and its order checked."""

import socket
from array import array
from types import ModuleType

import pytest

from bench.connections import BenchFault
from bench.load.acknowledgements import Acknowledgements
from bench.load.load import PAYLOAD_BYTES, Load
from tests.bench.frames import frame
from tests.kernel_forms import forms

LOAD = Load(publishers=2, subscribers=2, qos=1, rate=2, phase="burst")
each_form = pytest.mark.parametrize("kernel", forms("bench.kernels.pace"))


def puback(packet_id: int) -> bytes:
    return b"\x40\x02" + packet_id.to_bytes(2, "big")


def ends() -> tuple[list[socket.socket], list[socket.socket]]:
    """(those of the publishers, those of their broker)"""
    pairs = [socket.socketpair() for _ in range(2)]
    for ours, _ in pairs:
        ours.setblocking(False)
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


def test_acknowledgements_are_counted_however_they_are_cut() -> None:
    ours, theirs = ends()
    answers = Acknowledgements(ours, LOAD, range(2))
    taken = []
    for piece in (puback(1) + puback(2)[:3], puback(2)[3:]):
        theirs[0].sendall(piece)
        taken.append(answers.take(ours[0].fileno()))
    assert taken == [1, 1]
    assert (answers.completed, answers.disordered) == (2, 0)


def test_a_round_ends_when_all_publishers_are_acknowledged() -> None:
    ours, theirs = ends()
    answers = Acknowledgements(ours, LOAD, range(2))
    answers.begin()
    theirs[0].sendall(puback(1) + puback(2))
    theirs[1].sendall(puback(1))
    answers.wait(3)
    assert (answers.completed, answers.disordered) == (3, 0)


def test_an_acknowledgement_out_of_order_is_seen() -> None:
    ours, theirs = ends()
    answers = Acknowledgements(ours, LOAD, range(2))
    answers.begin()
    theirs[0].sendall(puback(2) + puback(1))
    answers.wait(2)
    assert answers.disordered == 2


def test_a_second_round_counts_from_the_beginning() -> None:
    ours, theirs = ends()
    answers = Acknowledgements(ours, LOAD, range(2))
    for _ in range(2):
        answers.begin()
        theirs[1].sendall(puback(1))
        answers.wait(1)
        assert (answers.completed, answers.disordered) == (1, 0)


def test_a_broker_that_leaves_is_a_fault() -> None:
    ours, theirs = ends()
    answers = Acknowledgements(ours, LOAD, range(2))
    answers.begin()
    theirs[0].close()
    with pytest.raises(BenchFault, match="closed"):
        answers.wait(1)


@each_form
def test_packet_ids_of_a_publisher_count_from_1(kernel: ModuleType) -> None:
    """MQTT 3.1.1, 2.3.1: a packet id is never 0."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    template = frame(0, 0, qos=1, topic=b"b/00000")
    pacer = kernel.Pacer(
        kernel.Schedule(1, 1_000, True), array("i", [ours.fileno()]), template, PAYLOAD_BYTES, array("q", [0]),
        array("Q"), True,
    )  # fmt: skip
    pacer.run(0, 3, 0, 2**62)
    expected = (frame(0, s, qos=1, packet_id=s + 1, sent_ns=1_000 * s, topic=b"b/00000") for s in range(3))
    assert theirs.recv(10_000) == b"".join(expected)
