"""A place to read is nobody's for ever: who has most gives way, and who does not take what it gets."""

import pytest

from rumq.flight.errors import TooManyReads
from rumq.flight.serving.read_slots import LEAVING_MAX, STALLED_SECONDS, Read, ReadSlots


class Clock:
    now = 1000.0


def reads(most: int) -> tuple[ReadSlots, Clock]:
    clock = Clock()
    return ReadSlots(most, now=lambda: clock.now), clock


def test_whoever_has_most_gives_way_to_who_has_less_and_nobody_to_an_equal() -> None:
    kept, clock = reads(4)
    of_a = [kept.acquire("a") for _ in range(4)]
    kept.batch_offered(of_a[2])
    clock.now += 1
    kept.batch_offered(of_a[0])
    kept.acquire("b")  # the one whose client takes longest
    with pytest.raises(TooManyReads, match="others needed its slot"):
        kept.batch_offered(of_a[2])
    kept.acquire("c")
    with pytest.raises(TooManyReads):
        kept.batch_offered(of_a[0])
    for holder in "abc":
        with pytest.raises(TooManyReads, match="4 read already"):
            kept.acquire(holder)
    for read in (of_a[1], of_a[3]):
        kept.batch_offered(read)


def test_who_does_not_take_a_batch_gives_way_to_anybody_after_a_while() -> None:
    kept, clock = reads(2)
    stalled, slow = kept.acquire("a"), kept.acquire("a")
    kept.batch_offered(stalled)
    clock.now += STALLED_SECONDS - 1
    with pytest.raises(TooManyReads):
        kept.acquire("a")
    clock.now += 1
    kept.acquire("a")
    with pytest.raises(TooManyReads):
        kept.batch_offered(stalled)
    clock.now += 3600
    with pytest.raises(TooManyReads):  # `slow` only looks for rows: no client of its holds anything up
        kept.acquire("a")
    kept.batch_offered(slow)


def test_what_one_holder_leaves_behind_is_bounded() -> None:
    kept, clock = reads(1)
    left: list[Read] = []
    for _ in range(LEAVING_MAX + 1):
        left.append(kept.acquire("a"))
        kept.batch_offered(left[-1])
        clock.now += STALLED_SECONDS
    with pytest.raises(TooManyReads, match="wait for their clients"):
        kept.acquire("a")
    newest = kept.acquire("b")
    for read in left:
        kept.release(read)
    with pytest.raises(TooManyReads):
        kept.acquire("a")
    kept.release(newest)
    kept.acquire("a")
