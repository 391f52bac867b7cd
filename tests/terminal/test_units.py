"""Figures are short, and each unit has its own form."""

import pytest

from rumq.terminal.units import age, count, moment, rate, shown, size


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (5 << 30, "5.0 GiB"),
        (3 << 50, "3072.0 TiB"),
        (-2048, "-2.0 KiB"),
    ],
)
def test_sizes(value: int, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.00025, "250 µs"), (0.0032, "3.2 ms"), (4.25, "4.25 s"), (59.96, "60 s"), (60, "1m 0s"),
        (725, "12m 5s"), (12_000, "3h 20m"), (3_549_600, "41d 2h"), (-5, "-5 s"),
    ],
)  # fmt: skip
def test_ages(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_rates_counts_and_times() -> None:
    assert [rate(0), rate(0.4), rate(12345.6)] == ["0", "0.4/s", "12,346/s"]
    assert [count(1_234_567), count(0.5)] == ["1,234,567", "0.5"]
    assert moment(1_700_000_000_123_456) == "2023-11-14T22:13:20.123Z"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "bytes", "-"), (True, "", "yes"), ([], "", "-"), (["a", "b"], "", "a b"), (2048, "bytes", "2.0 KiB"),
        (2048.0, "bytes/s", "2.0 KiB/s"), (0, "messages/s", "0"), (90.0, "seconds", "1m 30s"), (1234, "rows", "1,234"),
        (12345, "lsn", "12345"), (12345, "", "12345"), (0, "µs since 1970", "-"), ("", "", "-"),
        ("a\x1b[2Jb\n", "", "a\\x1b[2Jb\\x0a"),
    ],
)  # fmt: skip
def test_a_value_is_shown_by_its_unit(value: object, unit: str, text: str) -> None:
    assert shown(value, unit) == text
