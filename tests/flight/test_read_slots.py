"""A place to read is nobody's for ever: who has most gives way, and who does not take what it gets."""

import pytest

from rumq.flight.errors import Busy
from rumq.flight.read_slots import LEAVING_MAX, STALLED_SECONDS, Read, ReadSlots


class Clock:
    now = 1000.0


def reads(most: int) -> tuple[ReadSlots, Clock]:
    clock = Clock()
    return ReadSlots(most, now=lambda: clock.now), clock


def test_whoever_has_most_gives_way_to_who_has_less_and_nobody_to_an_equal() -> None:
    kept, clock = reads(4)
    of_a = [kept.begin("a") for _ in range(4)]
    kept.gives(of_a[2])
    clock.now += 1
    kept.gives(of_a[0])
    kept.begin("b")  # the one whose client takes longest
    with pytest.raises(Busy, match="others needed its place"):
        kept.gives(of_a[2])
    kept.begin("c")
    with pytest.raises(Busy):
        kept.gives(of_a[0])
    for holder in "abc":
        with pytest.raises(Busy, match="4 read already"):
            kept.begin(holder)
    for read in (of_a[1], of_a[3]):
        kept.gives(read)


def test_who_does_not_take_a_batch_gives_way_to_anybody_after_a_while() -> None:
    kept, clock = reads(2)
    stalled, slow = kept.begin("a"), kept.begin("a")
    kept.gives(stalled)
    clock.now += STALLED_SECONDS - 1
    with pytest.raises(Busy):
        kept.begin("a")
    clock.now += 1
    kept.begin("a")
    with pytest.raises(Busy):
        kept.gives(stalled)
    clock.now += 3600
    with pytest.raises(Busy):  # `slow` only looks for rows: no client of its holds anything up
        kept.begin("a")
    kept.gives(slow)


def test_what_one_holder_leaves_behind_is_bounded() -> None:
    kept, clock = reads(1)
    left: list[Read] = []
    for _ in range(LEAVING_MAX + 1):
        left.append(kept.begin("a"))
        kept.gives(left[-1])
        clock.now += STALLED_SECONDS
    with pytest.raises(Busy, match="wait for their clients"):
        kept.begin("a")
    newest = kept.begin("b")
    for read in left:
        kept.finish(read)
    with pytest.raises(Busy):
        kept.begin("a")
    kept.finish(newest)
    kept.begin("a")
