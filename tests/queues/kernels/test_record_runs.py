"""Runs of a chunk's rows: together they are the rows, and none could be joined with the next."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.row_layout import ROW
from tests.kernel_forms import forms

KERNEL = pytest.mark.parametrize("kernel", forms("rumq.queues.kernels.record_runs"))
NUMBERS = st.sampled_from([0, 1, 2, (1 << 32) - 1, 1 << 32])
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), NUMBERS), max_size=30)


@KERNEL
@given(ROWS)
def test_runs_are_the_rows_and_as_few_as_can_be(kernel: Any, rows: list[tuple[int, int, int]]) -> None:
    """rows: topic id, publisher, number"""
    data = b"".join(
        ROW.pack(topic, 100 * at, number, 5, 9, publisher, 1, 0) for at, (topic, publisher, number) in enumerate(rows)
    )
    runs = kernel.runs_of(data)
    assert [(topic, who, number) for topic, who, first, stop, _ in runs for number in range(first, stop)] == rows
    at = 0
    for topic, who, first, stop, start in runs:
        assert start == 100 * at
        at += stop - first
        if at < len(rows):
            assert rows[at] != (topic, who, stop)
