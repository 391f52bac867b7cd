"""`python -m bench outbox` in its shortest form: it measures, and notices what is missing, doubled or out of order."""

import pytest

from bench.connections import BenchFault
from bench.outbox.away import check, measure
from bench.outbox.publisher import parsed, payload


def test_a_payload_says_its_program_and_its_number() -> None:
    assert len(payload(120, 4711)) == 64 and parsed(payload(120, 4711)) == (120, 4711)


def test_a_batch_that_was_kept_and_not_said_may_be_published_again() -> None:
    check([(0, 0), (0, 1), (1, 1), (1, 2)], 3)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([(0, 0), (0, 2)], "1 of 3 are missing, 1 first"),
        ([(0, 0), (0, 1), (0, 1), (0, 2)], "1 were forwarded twice"),
        ([(0, 0), (0, 2), (0, 1)], "another order"),
    ],
)
def test_a_fault_of_the_log_is_said(found: list[tuple[int, int]], said: str) -> None:
    with pytest.raises(BenchFault, match=said):
        check(found, 3)


def test_a_client_that_is_killed_is_measured() -> None:
    found = measure(seconds=0.5, rate=400, kills=1)
    assert found["messages in all"] == 1_000 and found["messages that waited"] >= 200
