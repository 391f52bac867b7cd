"""Queues take turns on a connection: one that pushes a flood delays the others by a piece, not by its flood."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rumq.queues.kernels.push_frames import PushFrames
from rumq.queues.link.push_batches import TURN_BYTES, PushBatch, WaitingBatches

SIZE = 100


def batch(lane: str, count: int) -> PushBatch:
    frames = PushFrames()
    for _ in range(count):
        frames.add(0x32, b"\0\1t", b"\0", b"x" * SIZE)
    return PushBatch(frames, lane=lane)


def test_one_message_waits_for_a_piece_of_a_flood_and_not_for_all_of_it() -> None:
    waiting = WaitingBatches()
    for _ in range(5):
        waiting.put(batch("greedy", 10_000))
    waiting.put(batch("modest", 1))
    first, second = waiting.next_piece(8192), waiting.next_piece(8192)
    assert first.batch.lane == "greedy" and (first.stop - first.first) * SIZE <= TURN_BYTES
    assert second.batch.lane == "modest"


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 400)), max_size=12),
    st.lists(st.integers(1, 300), min_size=1, max_size=20),
)
def test_everything_goes_once_and_each_queue_in_its_order(puts: list[tuple[str, int]], bounds: list[int]) -> None:
    waiting = WaitingBatches()
    batches = [batch(lane, count) for lane, count in puts]
    for each in batches:
        waiting.put(each)
    sent: dict[str, list[tuple[int, int]]] = {}
    turn = 0
    while waiting:
        piece = waiting.next_piece(bounds[turn % len(bounds)])
        turn += 1
        assert 0 < piece.stop - piece.first <= max(bounds)
        number = batches.index(piece.batch)
        sent.setdefault(piece.batch.lane, []).extend((number, each) for each in range(piece.first, piece.stop))
    wanted: dict[str, list[tuple[int, int]]] = {}
    for number, (lane, count) in enumerate(puts):
        wanted.setdefault(lane, []).extend((number, each) for each in range(count))
    assert sent == wanted


def test_what_waits_is_told_when_the_connection_ends() -> None:
    waiting = WaitingBatches()
    batches = [batch("a", 500), batch("b", 1), batch("a", 2)]
    for each in batches:
        waiting.put(each)
    waiting.next_piece(1)
    assert set(waiting) == set(batches)
    waiting.clear()
    assert not waiting
