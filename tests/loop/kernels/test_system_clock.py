"""The system's clocks, compiled and as Python: what Python's own functions say."""

import time
from typing import Any

import pytest

from tests.kernel_forms import forms


@pytest.fixture(params=forms("rumq.loop.kernels.system_clock"))
def kernel(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_the_time_of_day_is_whole_microseconds_between_two_readings_of_python(kernel: Any) -> None:
    before, now_us, after = time.time_ns() // 1000, kernel.now_us(), time.time_ns() // 1000
    assert type(now_us) is int and before <= now_us <= after


def test_the_monotonic_clock_is_that_of_python(kernel: Any) -> None:
    before, now, after = time.monotonic(), kernel.monotonic(), time.monotonic()
    assert before - 1e-6 <= now <= after + 1e-6
