"""Who published a message, told to the groups that asked: a user property behind all others
(docs/reference/publishers.md)."""

from typing import Any

import pytest

from tests.kernel_forms import forms

ROW_V5 = 16
NAMES = {1: b"device-1", 3: b"device-3"}


@pytest.fixture(params=forms("rumq.mqtt.kernels.fanout"))
def kernel(request: pytest.FixtureRequest) -> Any:
    return request.param


def chunk(*publishers: int, properties: bytes = b"\0") -> tuple[bytes, bytes]:
    """A row and a frame of QoS 0 on topic "t" for each; properties: with their length, as MQTT 5 has them"""
    rows, frames = b"", b""
    for publisher in publishers:
        body = b"\0\1t" + properties + b"x"
        frame = bytes([0x30, len(body)]) + body
        row = bytearray(32)
        row[4:8] = len(frames).to_bytes(4, "little")
        row[20:24] = (len(frame) - 1).to_bytes(4, "little")
        row[24:28] = publisher.to_bytes(4, "little")
        row[28] = ROW_V5
        rows += row
        frames += frame
    return rows, frames


def built(
    kernel: Any,
    publishers: dict[int, bytes] | None,
    *numbers: int,
    v5: bool = True,
    located: bytes = b"",
    **how: Any,
) -> list[bytes]:
    rows, frames = chunk(*numbers, properties=how.pop("properties", b"\0"))
    form = kernel.Form(0, 0, False, how.pop("identifiers", b""), located, publishers)
    blob, after = kernel.build(
        rows,
        frames,
        0,
        len(numbers),
        5,
        0,
        [form],
        None,
        None,
        v5,
        how.pop("packet_max", 0),
        0,
        0,
        None,
        0,
        1 << 40,
    )
    assert after == len(numbers)
    return [bytes(blob.data[blob.start(i) : blob.start(i + 1)]) for i in range(blob.count)]


def told(name: bytes) -> bytes:
    return b"\x26\0\x0erumq-publisher" + len(name).to_bytes(2, "big") + name


def frame(properties: bytes) -> bytes:
    body = b"\0\1t" + bytes([len(properties)]) + properties + b"x"
    return bytes([0x30, len(body)]) + body


def test_each_message_names_its_publisher(kernel: Any) -> None:
    assert built(kernel, NAMES, 3, 1) == [frame(told(b"device-3")), frame(told(b"device-1"))]


@pytest.mark.parametrize("number", [0, 2, 4, 0xFFFFFFFE])
def test_nothing_is_told_of_a_publisher_without_a_name(kernel: Any, number: int) -> None:
    assert built(kernel, NAMES, number) == [frame(b"")]


def test_nothing_is_told_to_those_who_did_not_ask_or_speak_an_older_version(kernel: Any) -> None:
    assert built(kernel, None, 1) == [frame(b"")]
    assert built(kernel, NAMES, 1, v5=False) == [b"\x30\x04\0\1tx"]


def test_it_stands_behind_what_the_publisher_sent(kernel: Any) -> None:
    forged = told(b"somebody")
    (only,) = built(kernel, NAMES, 1, properties=bytes([len(forged)]) + forged, identifiers=b"\x0b\x07")
    assert only == frame(forged + b"\x0b\x07" + told(b"device-1"))


def test_it_stands_behind_the_place_in_the_log(kernel: Any) -> None:
    (only,) = built(kernel, NAMES, 1, located=b"main/g1/p0")
    assert only.index(b"rumq-offset") < only.index(b"rumq-time") < only.index(told(b"device-1"))


def test_it_counts_against_the_largest_packet(kernel: Any) -> None:
    size = len(frame(told(b"device-1")))
    assert len(built(kernel, NAMES, 1, 1, packet_max=size)) == 2
    assert built(kernel, NAMES, 1, 1, packet_max=size - 1) == []


def test_names_that_come_later_are_seen(kernel: Any) -> None:
    names: dict[int, bytes] = {}
    form = kernel.Form(0, 0, False, b"", b"", names)
    assert not form.plain() and kernel.Form(0, 0, False, b"", b"", None).plain()
    names[1] = b"new"
    rows, frames = chunk(1)
    blob, _ = kernel.build(rows, frames, 0, 1, 5, 0, [form], None, None, True, 0, 0, 0, None, 0, 1 << 40)
    assert bytes(blob.data) == frame(told(b"new"))
