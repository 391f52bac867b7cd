"""Up to where the lsns of a partition's owner name the records that were shown here."""

import pytest

from rumq.shards.bus.owner_run import OwnerRun

SHOWN = [(1, 0), (2, 30)]  # the run that was met began at lsn 30, under epoch 2


@pytest.mark.parametrize(
    ("incarnation", "starts", "below"),
    [
        (77, SHOWN, 60),  # the same run
        (88, [*SHOWN, (3, 40)], 40),  # the next one: whatever the first had shown from lsn 40 on it did not write
        (99, [*SHOWN, (3, 40), (4, 35)], 35),  # and one that was never met had lost more
        (99, [*SHOWN, (3, 35), (4, 50)], 35),  # or less, and wrote it anew
        (88, [(1, 0), (2, 30)], 30),  # the one that was met has written nothing: its epoch is another's now
        (88, [(5, 60)], 60),  # retention has removed what the others wrote
        (88, [], 60),  # a partition whose lsns do not come again
    ],
)
def test_records_are_the_same_below_where_any_later_run_began(
    incarnation: int, starts: list[tuple[int, int]], below: int
) -> None:
    run = OwnerRun()
    run.met(77, SHOWN, 45)
    assert run.met(incarnation, starts, 60) == below
    assert run.known == (incarnation, starts[-1][0] if starts else 0)


def test_of_one_that_nothing_is_known_of_everything_counts() -> None:
    assert OwnerRun().met(77, SHOWN, 45) == 45
