"""A topic's number leads to its route for less than its name would, by far."""

import pytest

from bench.measure.numeric_ids import figures
from router.kernels import routes


def test_each_step_has_a_figure() -> None:
    assert set(figures(10, 100, 1)) == {"name to number", "number to route", "name to filters"}


@pytest.mark.skipif(not routes.__file__.endswith(".so"), reason="the kernels are not compiled")
def test_a_number_is_cheaper_than_a_name() -> None:
    found = figures(1000, 10_000)
    assert found["number to route"] * 10 < found["name to filters"]
