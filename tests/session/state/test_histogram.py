"""A histogram of durations: buckets that double, weights, sums; compiled and as plain Python."""

from types import ModuleType

import pytest

from tests.kernel_forms import forms

BUCKETS = 19


@pytest.fixture(params=forms("rumq.session.state.histogram"))
def module(request: pytest.FixtureRequest) -> ModuleType:
    found: ModuleType = request.param
    return found


def test_bounds_double_from_64_microseconds_on(module: ModuleType) -> None:
    assert module.BOUNDS[0] == 64e-6 and len(module.BOUNDS) == BUCKETS - 1
    assert all(after == 2 * before for before, after in zip(module.BOUNDS, module.BOUNDS[1:], strict=False))
    assert module.BOUNDS[-1] == pytest.approx(8.39, abs=0.01)


def test_each_duration_is_in_the_bucket_below_its_bound(module: ModuleType) -> None:
    for at, bound in enumerate(module.BOUNDS):
        histogram = module.Histogram()
        histogram.observe(bound * 0.99)
        histogram.observe(bound * 1.01)
        found = [number for number, count in enumerate(histogram.counts) if count]
        assert found == [at, at + 1], bound


@pytest.mark.parametrize(("seconds", "bucket"), [(0.0, 0), (-1e-3, 0), (9.0, -1), (1e6, -1)])
def test_nothing_falls_beyond_the_first_and_the_last(module: ModuleType, seconds: float, bucket: int) -> None:
    histogram = module.Histogram()
    histogram.observe(seconds)
    assert histogram.counts[bucket] == 1 == sum(histogram.counts) and len(histogram.counts) == BUCKETS


def test_a_weight_counts_so_many_times_and_seconds_are_their_sum(module: ModuleType) -> None:
    histogram = module.Histogram()
    histogram.observe(0.25, 4)
    histogram.observe(0.5)
    histogram.observe(7.0, 0)
    assert sum(histogram.counts) == 5 and histogram.seconds == 1.5
    assert sorted(histogram.counts)[-2:] == [1, 4]


def test_histograms_do_not_share_their_counts(module: ModuleType) -> None:
    one, other = module.Histogram(), module.Histogram()
    one.observe(0.1)
    assert sum(other.counts) == 0 and other.seconds == 0.0
