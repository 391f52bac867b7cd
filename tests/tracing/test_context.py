"""Trace contexts as text: W3C Trace Context, 3.2 and 4.3."""

import pytest

from rumq.tracing.context import TraceContext, parsed, told_state

VALUE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_traceparent_is_read_and_written() -> None:
    found = parsed(VALUE)
    assert found is not None and found.traceparent == VALUE and found.is_sampled
    assert found.trace.hex() == "0af7651916cd43dd8448eb211c80319c" and found.span.hex() == "b7ad6b7169203331"


def test_flags_that_are_not_known_are_kept() -> None:
    found = parsed(VALUE[:-2] + b"02")
    assert found is not None and not found.is_sampled and found.traceparent[-2:] == b"02"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"nonsense",
        VALUE[:-1],
        VALUE + b"0",
        VALUE + b"-more",  # of version 00
        VALUE.upper(),
        b"ff" + VALUE[2:],
        b"00-" + b"0" * 32 + VALUE[35:],
        VALUE[:36] + b"0" * 16 + VALUE[52:],
        VALUE.replace(b"-", b"_"),
        b"\xff" * 55,
    ],
)
def test_what_is_malformed_is_none(value: bytes) -> None:
    assert parsed(value) is None


def test_of_a_later_version_the_fields_that_are_known_count() -> None:
    found = parsed(b"01" + VALUE[2:] + b"-more")
    assert found == TraceContext(bytes.fromhex("0af7651916cd43dd8448eb211c80319c"), bytes.fromhex("b7ad6b7169203331"))
    assert found.traceparent == VALUE


def test_a_huge_tracestate_is_not_told() -> None:
    assert told_state(b"congo=t61") == "congo=t61"
    assert told_state(b"a=" + b"x" * 511) == "" == told_state(b"\xc3\xa4=1")
