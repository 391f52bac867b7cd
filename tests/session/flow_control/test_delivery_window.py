"""What a session gets again of what it may have had before a crash: QoS 0 once, the rest with DUP, in batches."""

import itertools
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.chunk import Chunk
from router.commands import Blocked
from router.effects import Deliver
from router.readers.reader import Group, GroupKey, Reader
from router.readers.subscription import Subscription
from rumq.loop.queues import StepQueue
from rumq.mqtt.kernels.fanout import Blob
from rumq.mqtt.kernels.window import Window
from rumq.session.flow_control.delivery_window import DeliveryWindow
from rumq.session.flow_control.rate_limits import Bucket, Rate
from rumq.session.flow_control.replay_throttle import ReplayThrottle
from rumq.session.ports.transport import Outbox
from rumq.session.state.session import Session, Shape

BASE_LSN = 1_000


class Socket(Outbox):
    def __init__(self) -> None:
        self.room, self.refused, self.data = 1 << 30, False, bytearray()

    def write(self, data: Any, owner: object | None = None) -> None:
        self.data += data


class Journal:
    """Counts the records that a session's messages are noted in; each may cost a sync."""

    def __init__(self, outbox: Socket) -> None:
        self.outbox, self.records = outbox, 0

    def sent(self, window: Window, code: int, first: int, data: Any) -> None:
        self.records += 1
        self.outbox.write(data)


def chunk_of(count: int) -> Chunk:
    """Of `count` records, whose bytes nobody looks at."""
    return Chunk(BASE_LSN, count, 0, 0, b"", b"")


def frame(qos: int, number: int, payload_bytes: int = 4) -> bytes:
    body = b"\0\1t" + (b"\0\0" if qos else b"") + number.to_bytes(payload_bytes, "big")
    return bytes([0x30 | qos << 1, len(body)]) + body


def blob_of(levels: list[int]) -> Blob:
    frames = [frame(qos, number) for number, qos in enumerate(levels)]
    starts = array("I", [0])
    for each in frames:
        starts.append(starts[-1] + len(each))
    rows = array("I", range(len(frames)))
    numbered = sum(qos > 0 for qos in levels)
    return Blob(b"".join(frames), len(frames), numbered, memoryview(starts), memoryview(rows), BASE_LSN, False)


def offer(
    levels: list[int], redelivered_below: int, credit: int
) -> tuple[Journal, list[tuple[int, bool, int]], list[Any]]:
    """Returns the journal, (QoS, DUP, number) of each message sent, and the commands to the router."""
    outbox, commands = Socket(), StepQueue()
    journal = Journal(outbox)
    flow = DeliveryWindow(outbox, Session("c", None, personal=False), credit, commands, journal)
    group = Group(GroupKey(frozenset([Subscription("t", 2)]), False, (Shape(4, 0, 0), None)), 1)
    reader = Reader(1, group, [0], "c")
    reader.redelivered_below = [BASE_LSN + redelivered_below]
    effect = Deliver(group, 0, chunk_of(len(levels)), 0, len(levels), [reader])
    flow.offer(effect, reader, blob_of(levels))
    return journal, messages_in(outbox.data), commands.items


def messages_in(data: bytearray) -> list[tuple[int, bool, int]]:
    found, at = [], 0
    while at < len(data):
        head, size = data[at], data[at + 1]
        found.append((head >> 1 & 3, bool(head & 8), int.from_bytes(data[at + 2 + size - 4 : at + 2 + size], "big")))
        at += 2 + size
    return found


def aliased(outbox: Socket, credit: int) -> tuple[DeliveryWindow, Deliver, Reader]:
    """(delivery window, delivery, reader) of a client that takes topic aliases and replays."""
    flow = DeliveryWindow(outbox, Session("c", None, personal=False), credit, StepQueue())
    group = Group(GroupKey(frozenset([Subscription("t", 2)]), True, (Shape(5, 0, 9), "c")), 1)
    reader = Reader(1, group, [0], "c")
    return flow, Deliver(group, 0, chunk_of(3), 0, 3, [reader]), reader


def test_a_throttled_replay_with_topic_aliases_leaves_others_waiting_for_room() -> None:
    """Another reader of the client found no room: it is told when there is, not when the throttle allows more."""
    outbox = Socket()
    flow, effect, replay = aliased(outbox, credit=9)
    flow.meter = ReplayThrottle((Bucket(Rate(messages=1), 0.0),), lambda: 0.0, lambda _, __: None, lambda: None)
    flow.meter.spend(9, 0)
    outbox.refused = True
    assert flow.meter.is_spent and flow.rows_max(effect, replay, 0, numbered=True) == 0
    assert outbox.refused


@pytest.mark.parametrize(("room", "credit", "refused"), [(0, 9, True), (1, 0, False)])
def test_messages_with_topic_aliases_wait_for_room_or_for_credit(room: int, credit: int, refused: bool) -> None:
    outbox = Socket()
    outbox.room = room
    flow, effect, reader = aliased(outbox, credit)
    assert flow.rows_max(effect, reader, 0, numbered=True) == 0
    assert (outbox.refused, flow.window_full) == (refused, not refused)


def test_ten_thousand_messages_of_qos_2_are_noted_in_a_few_records() -> None:
    journal, sent, _ = offer([2] * 10_000, redelivered_below=10_000, credit=20_000)
    assert [number for _, _, number in sent] == list(range(10_000))
    assert journal.records <= 3  # of 64 KiB each; one a message would be a sync a message


def test_a_small_window_is_filled_at_once() -> None:
    journal, sent, commands = offer([2] * 1_000, redelivered_below=1_000, credit=50)
    assert len(sent) == 50 and journal.records == 1
    [blocked] = commands
    assert isinstance(blocked, Blocked) and blocked.lsn == BASE_LSN + 50


@given(
    levels=st.lists(st.integers(0, 2), max_size=60),
    redelivered_below=st.integers(0, 70),
    credit=st.integers(0, 70),
)
def test_it_is_as_if_each_message_was_offered_alone(levels: list[int], redelivered_below: int, credit: int) -> None:
    expected, left, refused = [], credit, None
    # Below `redelivered_below` as many as the window takes; QoS 0 that may have been sent does not come again.
    for number, qos in enumerate(levels):
        if qos and not left:
            refused = BASE_LSN + number
            break
        if qos:
            left -= 1
        if qos or number >= redelivered_below:
            expected.append((qos, bool(qos) and number < redelivered_below, number))
    journal, sent, commands = offer(levels, redelivered_below, credit)
    if not redelivered_below:
        # Nothing is redelivered: messages of QoS 0 may wait with those behind them.
        assert sent == expected[: len(sent)]
        return
    assert sent == expected
    assert [command.lsn for command in commands] == ([] if refused is None else [refused])
    assert journal.records <= sum(a != b for a, b in itertools.pairwise(levels)) + 1
