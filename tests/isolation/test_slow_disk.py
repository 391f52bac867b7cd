"""A disk that is slow slows those who wait for it: an acknowledgement of another stream comes meanwhile."""

import threading
from collections.abc import Iterator

import pytest

from commitlog.testing.simulated_files import SimulatedFiles
from rumq.shards.write_path.worker_threads import Worker
from tests.conformance import wire
from tests.conformance.wire import Kind
from tests.isolation.turns import Connection, Turned

SECONDS_MAX = 30


class OneSlowDisk(SimulatedFiles):
    """Syncs of the stream `other` wait until `spun` is set; `reached` says that one does."""

    def __init__(self) -> None:
        super().__init__()
        self.spun, self.reached = threading.Event(), threading.Event()
        self.spun.set()

    def sync(self, handle: int) -> None:
        if "/other/" in self._of(handle)[1]:
            self.reached.set()
            assert self.spun.wait(SECONDS_MAX)
        super().sync(handle)


@pytest.fixture
def files() -> OneSlowDisk:
    return OneSlowDisk()


@pytest.fixture
def shard(files: OneSlowDisk) -> Iterator[Turned]:
    made = Turned(files, one_writer=False)
    yield made
    files.spun.set()
    made.end()


def test_who_publishes_to_another_stream_is_acknowledged_meanwhile(shard: Turned, files: OneSlowDisk) -> None:
    patient, other = Connection(shard, "patient"), Connection(shard, "other")
    files.spun.clear()
    files.reached.clear()
    patient.send(wire.publish("other/topic", b"slow", 1, 1))
    shard.turn()
    assert files.reached.wait(SECONDS_MAX)
    other.send(wire.publish("quick/topic", b"quick", 1, 2))
    shard.turn()
    heard = other.take()
    while not heard:
        shard.wait()
        shard.turn()
        heard = other.take()
    assert [(packet.kind, packet.packet_id) for packet in heard] == [(Kind.PUBACK, 2)]
    assert patient.take() == [], "its own disk has not answered"
    files.spun.set()
    shard.settle()
    assert [(packet.kind, packet.packet_id) for packet in patient.take()] == [(Kind.PUBACK, 1)]


def test_jobs_of_a_lane_keep_their_order_and_lanes_do_not_wait_for_each_other() -> None:
    worker, gate = Worker("test"), threading.Event()
    done: list[str] = []
    worker.submit(lambda: gate.wait(SECONDS_MAX), lambda *_: done.append("slow"), lane=1)
    worker.submit(lambda: None, lambda *_: done.append("behind it"), lane=1)
    worker.submit(gate.set, lambda *_: done.append("beside it"), lane=2)
    worker.stop()
    assert done.index("slow") < done.index("behind it") and "beside it" in done
    assert worker.pending == 0


def test_one_lane_keeps_the_order_of_all() -> None:
    worker = Worker("test", one_lane=True)
    done: list[int] = []
    for number in range(20):
        worker.submit(lambda number=number: done.append(number), lambda *_: None, lane=number % 3)  # type: ignore[misc]
    worker.stop()
    assert done == list(range(20))
