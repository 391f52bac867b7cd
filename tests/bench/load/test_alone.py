"""A message that comes alone: the next one is sent once the PUBACK has come, and each is timed."""

import socket
import threading
from array import array
from pathlib import Path

import pytest

from bench import progress
from bench.connections import BenchFault
from bench.load.alone import Alone
from bench.load.load import Load, Round
from bench.measure.measure import beyond_sync
from bench.progress import Progress
from tests.bench.frames import frame

LOAD = Load(publishers=1, subscribers=1, qos=1, window=1, alone=True)
FRAME_BYTES = len(frame(0, 0, qos=1))


@pytest.fixture
def counters(tmp_path: Path) -> Progress:
    path = tmp_path / "progress"
    progress.create(path, 1, (1, 1))
    return Progress(path, 1, (1, 1))


def answered_by(broker: socket.socket, most: int, waiting: list[int]) -> None:
    """Acknowledge `most` messages, then leave; `waiting`: bytes that had come before each was answered."""
    for number in range(most):
        data = broker.recv(FRAME_BYTES, socket.MSG_WAITALL)
        broker.setblocking(False)
        try:
            waiting.append(len(broker.recv(1)))
        except BlockingIOError:
            waiting.append(0)
        broker.setblocking(True)
        assert data[0] == 0x32
        broker.sendall(b"\x40\x02" + (number + 1).to_bytes(2, "big"))
    broker.close()


def alone(answers: int) -> tuple[Alone, list[int]]:
    ours, theirs = socket.socketpair()
    waiting: list[int] = []
    threading.Thread(target=answered_by, args=(theirs, answers, waiting), daemon=True).start()
    return Alone(ours, LOAD), waiting


def round_of(messages: int) -> Round:
    return Round(number=1, messages=messages, seconds_max=20.0, lead=0)


def test_no_message_is_sent_before_the_one_before_is_acknowledged(counters: Progress) -> None:
    one, waiting = alone(5)
    report = one.run_round(round_of(5), counters, 0)
    assert (report.sent, report.unacknowledged, report.disordered) == (5, 0, 0)
    assert len(array("Q", report.acknowledged_ns)) == 5
    assert waiting == [0] * 5
    assert (counters.sent[0], counters.ended[0]) == (5, 1)


def test_a_broker_that_leaves_is_a_fault(counters: Progress) -> None:
    one, _ = alone(2)
    with pytest.raises((BenchFault, OSError)):
        one.run_round(round_of(3), counters, 0)


def test_what_is_faster_than_the_disk_is_not_beyond_it() -> None:
    assert beyond_sync({"acknowledged_p50_us": 1e12})["beyond_sync_p50_us"] > 0
    assert "beyond_sync_p50_us" not in beyond_sync({"acknowledged_p50_us": 0.0})
