"""One part of a chunk to the readers of one group: what each is sent, and who is to get the chunk again."""

from array import array
from types import SimpleNamespace
from typing import Any

import pytest

from commitlog import Chunk
from commitlog.testing.simulated_files import SimulatedFiles
from router.commands import Blocked
from router.effects import Scatter
from router.readers.reader import Group, GroupKey, Reader
from router.readers.subscription import Subscription
from router.shard import ShardRouter
from rumq.loop.queues import ReadyLinks, StepQueue
from rumq.loop.scheduler import ShardClock
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.ports.transport import Outbox
from rumq.session.state.drop_counters import DropCounters
from rumq.session.state.session import Session, Shape
from rumq.shards.delivery.fan_out import FanOut
from rumq.shards.delivery.fan_out_cache import FanOutCache
from tests.commitlog.records import NOW, append, opened, some_records
from tests.conformance import wire


class Socket(Outbox):
    """is_broken: nothing can be written to it"""

    def __init__(self) -> None:
        self.room, self.refused, self.data, self.is_broken = 1 << 30, False, b"", False

    def write(self, data: Any, owner: object = None) -> None:
        if self.is_broken:
            raise ZeroDivisionError
        self.data += bytes(data)

    def waits(self) -> bool:
        return False


class Parts:
    """A fan-out, and what it told; chunk: six records of QoS 1 of MQTT 3.1.1"""

    def __init__(self, buffer: Any = bytes) -> None:
        partition = opened(SimulatedFiles(), hot=1 << 30).own[0]
        made = append(partition, some_records(6))
        self.chunk = Chunk(made.base_lsn, made.count, made.base_ts, made.flags, buffer(made.rows), buffer(made.frames))
        self.commands, self.crashes = StepQueue(), list[object]()
        no_part: Any = None
        guard: Any = SimpleNamespace(crashed=self.crashes.append)
        clock = ShardClock(lambda: (NOW, 0.0))
        self.fan_out = FanOut(
            clock, self.commands, ReadyLinks(), guard, FanOutCache(ShardRouter([partition]).feeds), {}, DropCounters(),
            no_part,
        )  # fmt: skip

    def group(self, qos: int, version: int = 4) -> Group:
        wants = GroupKey(frozenset([Subscription("#", qos)]), False, (Shape(version, 0, 0), None))
        group = Group(wants, 1)
        group.form_number(["#"], "t/0")
        return group

    def reader(self, group: Group) -> tuple[Reader, Socket]:
        group.count += 1
        reader, outbox = Reader(group.count, group, [0], "c"), Socket()
        reader.sink = DeliveryWindow(outbox, Session("c", None, personal=False), 10, self.commands)
        return reader, outbox

    def scatter(self, readers: list[Reader], picked: list[int], first: int = 0) -> None:
        """To readers of one group. picked: numbers of rows, not below first"""
        part = (readers[0].group, readers, 0, array("I", [9, *picked, 9]), 1, 1 + len(picked))
        self.fan_out.scatter(Scatter(0, self.chunk, first, 6, [part]))

    def blocked(self) -> list[tuple[Reader, int]]:
        """Who is to get the chunk again, and from which row on."""
        found = [command for command in self.commands.take() if isinstance(command, Blocked)]
        return [(command.reader, command.lsn - self.chunk.base_lsn) for command in found]


def sent(picked: list[int], qos: int, version: int = 4, dup_below: int = 0) -> bytes:
    """Records of the chunk as a client gets them."""
    made = b""
    for packet_id, row in enumerate(picked, 1):
        packet = wire.publish(f"t/{row % 3}", b"payload %d" % row, qos, packet_id if qos else 0, version=version)
        made += bytes([packet[0] | (8 if row < dup_below else 0)]) + packet[1:]
    return made


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("picked", [[0], [5], [1, 4], [1, 2, 3], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize(("qos", "version"), [(1, 4), (0, 4), (1, 5), (0, 5)])
def test_frames_may_lie_in_a_chunk_of_another_shard(buffer: Any, picked: list[int], qos: int, version: int) -> None:
    """What comes over the bus is a view of its bytes: whether frames are encoded anew or not."""
    world = Parts(buffer)
    reader, outbox = world.reader(world.group(qos, version))
    world.scatter([reader], picked)
    assert outbox.data == sent(picked, qos, version)
    assert world.blocked() == []


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("first", [0, 1])
def test_who_cannot_take_it_gets_it_again_from_the_first_row_and_the_others_once(qos: int, first: int) -> None:
    world = Parts()
    group = world.group(qos)
    (here, outbox), (gone, _), (left, out_of), (full, no_room) = [world.reader(group) for _ in range(4)]
    gone.sink = None
    assert isinstance(left.sink, DeliveryWindow)
    left.sink.close()
    no_room.room = 0
    world.scatter([gone, left, full, here], [2, 4], first)
    assert world.blocked() == [(gone, first), (left, first), (full, first)]
    assert (out_of.data, no_room.data, no_room.refused) == (b"", b"", True)
    assert outbox.data == sent([2, 4], qos) and world.crashes == []


@pytest.mark.parametrize("qos", [0, 1])
def test_a_fault_in_one_window_is_told_of_its_client_alone(qos: int) -> None:
    world = Parts()
    group = world.group(qos)
    (first, before), (faulty, broken), (last, after) = [world.reader(group) for _ in range(3)]
    broken.is_broken = True
    world.scatter([first, faulty, last], [2, 4])
    assert world.crashes == [broken] and world.blocked() == [(faulty, 0)]
    assert before.data == after.data == sent([2, 4], qos)


def test_what_was_refused_of_a_step_is_not_overtaken_by_what_follows() -> None:
    world = Parts()
    reader, outbox = world.reader(world.group(1))
    reader.refused = 1
    world.scatter([reader], [2, 4])
    assert outbox.data == b"" and world.blocked() == [], "it comes again with what was refused"


@pytest.mark.parametrize("picked", [[1, 2, 3], [0, 2, 5]])
def test_what_a_client_may_have_had_before_a_crash_carries_dup(picked: list[int]) -> None:
    """MQTT-3.3.1-1"""
    world = Parts()
    reader, outbox = world.reader(world.group(1))
    reader.redelivered_below = [world.chunk.base_lsn + 3]
    world.scatter([reader], picked)
    assert outbox.data == sent(picked, 1, dup_below=3)
