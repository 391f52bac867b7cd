"""User properties that tell a subscriber where a message stands, and who published it. docs/reference/replay.md"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commitlog.names.publisher_names import PublisherNames
from tests.kernel_forms import forms

KERNEL = pytest.mark.parametrize("kernel", forms("rumq.mqtt.kernels.delivery_properties"))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def pairs(data: bytes) -> list[tuple[bytes, bytes]]:
    """User properties, decoded. MQTT 5.0, 3.3.2.3.7"""
    found, at = [], 0
    while at < len(data):
        assert data[at] == 0x26
        words = []
        at += 1
        for _ in range(2):
            size = int.from_bytes(data[at : at + 2], "big")
            words.append(data[at + 2 : at + 2 + size])
            at += 2 + size
        found.append((words[0], words[1]))
    return found


@KERNEL
def test_a_position_is_four_user_properties(kernel: Any) -> None:
    assert pairs(kernel.location(b"main/g1/p3", 7, 4711, 1_000_001)) == [
        (b"rumq-offset", b"7"),
        (b"rumq-lsn", b"4711"),
        (b"rumq-partition", b"main/g1/p3"),
        (b"rumq-time", b"1970-01-01T00:00:01.000001Z"),
    ]


@KERNEL
@given(st.integers(0, 8_000_000_000_000_000))
def test_a_time_is_as_datetime_writes_it(kernel: Any, ts_us: int) -> None:
    """RFC 3339, 5.6."""
    expected = (EPOCH + timedelta(microseconds=ts_us)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert kernel.rfc3339(ts_us).decode() == expected


@KERNEL
def test_a_publisher_without_a_name_is_not_told(kernel: Any) -> None:
    names = PublisherNames({1: b"device-1"}, 2)
    assert pairs(kernel.published_by(names, 1)) == [(b"rumq-publisher", b"device-1")]
    assert kernel.published_by(names, 0) == kernel.published_by(names, 2) == b""
