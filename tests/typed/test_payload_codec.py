"""What is encoded is read back; what does not fit raises what a receiver can report, whatever the bytes are."""

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis.strategies import binary, floats, sampled_from, text

from rumq.typed.payload_codec import Encoding, PayloadCodec, PayloadMismatch, maybe_encoding


class Reading(msgspec.Struct):
    celsius: float
    unit: str = "C"


@dataclass
class Point:
    x: int


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [(Reading, Reading(21.5)), (Point, Point(1)), (list[int], [1, 2]), (datetime, datetime(2026, 11, 27, tzinfo=UTC))],
)
def test_a_value_comes_back(kind: type[object], value: object, encoding: Encoding) -> None:
    codec = PayloadCodec(kind, encoding)
    assert codec.decode(codec.encode(value), codec.content_type) == value
    assert codec.decode(codec.encode(value), None) == value


def test_the_content_type_decides() -> None:
    json, msgpack = PayloadCodec(Reading, "json"), PayloadCodec(Reading, "msgpack")
    assert json.decode(msgpack.encode(Reading(1.0)), "application/msgpack") == Reading(1.0)
    assert msgpack.decode(json.encode(Reading(1.0)), "application/json; charset=utf-8") == Reading(1.0)
    with pytest.raises(ValueError, match=r"text/plain.*application/json or application/msgpack"):
        json.decode(b"{}", "text/plain")


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("application/json", "json"), ("Application/JSON", "json"), ("application/vnd.plant+json", "json"),
        ("application/x-msgpack", "msgpack"), ("application/vnd.msgpack", "msgpack"), ("image/png", None), ("x", None),
    ],
)  # fmt: skip
def test_media_types(content_type: str, encoding: str | None) -> None:
    assert maybe_encoding(content_type) == encoding


@pytest.mark.parametrize("value", [Reading("warm"), Point(1), {"celsius": "x"}, None, object()])  # type: ignore[arg-type]
def test_what_cannot_be_read_back_is_not_sent(value: object) -> None:
    with pytest.raises(TypeError):
        PayloadCodec(Reading, "json").encode(value)  # type: ignore[arg-type]


@given(binary(max_size=60), sampled_from(["json", "msgpack"]), sampled_from([Reading, Point, list[int], dict, object]))
def test_any_bytes_are_a_value_or_an_error_that_can_be_told(
    payload: bytes, encoding: Encoding, kind: type[object]
) -> None:
    with contextlib.suppress(msgspec.DecodeError, ValueError):
        PayloadCodec(kind, encoding).decode(payload, None)


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_a_payload_nested_without_end_is_an_error_of_its_own(encoding: Encoding) -> None:
    nested = b"[" * 100_000 if encoding == "json" else b"\x91" * 100_000
    with pytest.raises((msgspec.DecodeError, RecursionError)):
        PayloadCodec(object, encoding).decode(nested, None)


@given(floats(allow_nan=False, allow_infinity=False), text())
def test_every_reading_comes_back(celsius: float, unit: str) -> None:
    codec = PayloadCodec(Reading, "msgpack")
    assert codec.decode(codec.encode(Reading(celsius, unit)), None) == Reading(celsius, unit)


def test_types_and_encodings_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="json or msgpack"):
        PayloadCodec(Reading, "xml")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        PayloadCodec(int | Reading | Point, "json")  # type: ignore[arg-type]


def test_a_mismatch_says_where_and_what() -> None:
    assert str(PayloadMismatch("a/b", 7, "no object")) == "topic a/b at offset 7: no object"
    assert str(PayloadMismatch("a/b", None, "no object")) == "topic a/b: no object"
