"""Ends of shard processes are counted for a minute."""

from rumq.cluster.agent.process_ends import KEPT, REMEMBERED_SECONDS, ProcessEnds


def test_ends_are_counted_by_shard_for_a_minute() -> None:
    ends = ProcessEnds()
    assert ends.within_a_minute(0.0) == {}
    for now in (0.0, 1.0, 2.0):
        ends.note(1, now)
    ends.note(0, 2.0)
    assert ends.within_a_minute(3.0) == {0: 1, 1: 3}
    assert ends.within_a_minute(REMEMBERED_SECONDS + 1.5) == {0: 1, 1: 1}


def test_what_is_remembered_of_a_process_that_crashes_for_ever_is_bounded() -> None:
    ends = ProcessEnds()
    for now in range(100):
        ends.note(1, now / 100)
    assert ends.within_a_minute(1.0) == {1: KEPT}
