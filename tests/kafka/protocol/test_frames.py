"""Frames and messages: each API in each version is written and read back; what lies about its lengths is refused."""

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumq.kafka.protocol.apis import API_VERSIONS, APIS, answer_codec, request_codec
from rumq.kafka.protocol.errors import ErrorCode, KafkaFault, Malformed, TooMuch
from rumq.kafka.protocol.fields import (
    BOOL,
    BYTES,
    ELEMENTS_MAX,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    Array,
    Field,
    FieldReader,
    FieldWriter,
)
from rumq.kafka.protocol.frames import FrameCutter, UnknownVersion, answer_frame, offered, parse_request

BITS = {INT8: 8, INT16: 16, INT32: 32, INT64: 64}
EVERY = [(key, version) for key, api in APIS.items() for version in range(api.least, api.most + 1)]


def values_of(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Any message."""
    return st.fixed_dictionaries(
        {field.name: value_of(field.kind, version, nullable=version >= field.nullable) for field in fields
         if field.since <= version <= field.until}
    )  # fmt: skip


def value_of(kind: Any, version: int, *, nullable: bool = False) -> st.SearchStrategy[Any]:
    found: st.SearchStrategy[Any]
    if isinstance(kind, Array):
        one = value_of(kind.of, version) if isinstance(kind.of, str) else values_of(kind.of, version)
        found = st.lists(one, max_size=3)
    elif kind in BITS:
        found = st.integers(-(1 << BITS[kind] - 1), (1 << BITS[kind] - 1) - 1)
    elif kind == BOOL:
        found = st.booleans()
    elif kind == STRING:
        found = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    elif kind in (BYTES, RECORDS):
        found = st.binary(max_size=200)
    else:
        found = st.binary(min_size=16, max_size=16)
    return st.none() | found if nullable else found


def request_frame(key: int, version: int, body: dict[str, Any], client: str = "test") -> bytes:
    writer = FieldWriter()
    name = client.encode()
    writer.add(key.to_bytes(2, "big") + version.to_bytes(2, "big") + (7).to_bytes(4, "big"))
    writer.add(len(name).to_bytes(2, "big") + name)
    if APIS[key].is_flexible(version):
        writer.varint(0)
    request_codec(key, version).write(writer, body)
    return b"".join(writer.parts())


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


@settings(max_examples=300, deadline=None)
@given(data=st.data(), which=st.sampled_from(EVERY))
def test_a_request_is_read_as_it_was_written(data: st.DataObject, which: tuple[int, int]) -> None:
    key, version = which
    body = data.draw(values_of(APIS[key].request, version))
    found = parse_request(request_frame(key, version, body))
    assert (found.api, found.version, found.correlation, found.client_id) == (key, version, 7, "test")
    assert includes(found.body, body)
    assert {field.name for field in APIS[key].request} == set(found.body)  # later fields have their defaults


@settings(max_examples=300, deadline=None)
@given(data=st.data(), which=st.sampled_from(EVERY))
def test_an_answer_is_read_as_it_was_written(data: st.DataObject, which: tuple[int, int]) -> None:
    key, version = which
    body = data.draw(values_of(APIS[key].answer, version))
    given_ = in_parts(body)
    frame = b"".join(answer_frame(key, version, 9, given_))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    reader = FieldReader(frame[4:])
    assert reader.take(4) == (9).to_bytes(4, "big")
    if APIS[key].is_flexible(version) and key != API_VERSIONS:
        assert reader.take(1) == b"\0"
    found = answer_codec(key, version).read(reader)
    assert includes(found, body) and not reader.left


def includes(found: Any, wanted: Any) -> bool:
    """Whether all that is wanted was found; fields of other versions have their defaults."""
    if isinstance(wanted, dict):
        return all(includes(found[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(includes, found, wanted))
    return bool(found == wanted)


def in_parts(body: Any) -> Any:
    """Records are given in parts."""
    if isinstance(body, dict):
        return {
            name: [value[:3], value[3:]] if name == "records" and value is not None else in_parts(value)
            for name, value in body.items()
        }
    return [in_parts(each) for each in body] if isinstance(body, list) else body


@settings(max_examples=100, deadline=None)
@given(data=st.data(), which=st.sampled_from(EVERY))
def test_a_frame_that_is_cut_anywhere_is_malformed(data: st.DataObject, which: tuple[int, int]) -> None:
    frame = request_frame(*which, data.draw(values_of(APIS[which[0]].request, which[1])))
    for size in range(len(frame)):
        with pytest.raises(Malformed):
            parse_request(frame[:size])


@settings(max_examples=200, deadline=None)
@given(data=st.data(), which=st.sampled_from(EVERY))
def test_a_frame_with_a_changed_byte_is_read_or_malformed(data: st.DataObject, which: tuple[int, int]) -> None:
    frame = bytearray(request_frame(*which, data.draw(values_of(APIS[which[0]].request, which[1]))))
    at = data.draw(st.integers(0, len(frame) - 1))
    for value in (0, 1, 0x7F, 0x80, 0xFF, frame[at] ^ 1):
        changed = bytearray(frame)
        changed[at] = value
        try:
            parse_request(bytes(changed))
        except KafkaFault:
            pass


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(EVERY))
def test_anything_behind_a_header_is_read_or_malformed(rest: bytes, which: tuple[int, int]) -> None:
    key, version = which
    try:
        parse_request(key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + rest)
    except KafkaFault:
        pass


LIES = [0x7FFFFFFF, -0x80000000, -2, 1 << 30]


@pytest.mark.parametrize("which", EVERY)
@pytest.mark.parametrize("lie", LIES)
def test_a_length_that_lies_takes_no_memory(which: tuple[int, int], lie: int) -> None:
    key, version = which
    body = request_frame(key, version, {}) if not APIS[key].request else b""
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    if APIS[key].is_flexible(version):
        head += b"\0"
    tracemalloc.start()
    try:
        for skip in range(40):
            for length in ((lie & 0xFFFFFFFF).to_bytes(4, "big"), b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\x7f"):
                try:
                    parse_request(head + body + b"\0" * skip + length + b"\1" * 40)
                except KafkaFault:
                    pass
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_many_tiny_elements_are_too_many() -> None:
    names = [{"name": "", "topic_id": bytes(16)}] * (ELEMENTS_MAX + 1)
    with pytest.raises(Malformed, match="elements"):
        parse_request(request_frame(3, 1, {"topics": names}))
    parse_request(request_frame(3, 1, {"topics": names[:-1]}))


def test_bytes_that_are_left_are_ignored() -> None:
    """librdkafka 2.16 sends three too many where it asks for all topics."""
    assert parse_request(request_frame(3, 1, {"topics": None}) + b"\0\0\0").body["topics"] is None


def test_tagged_fields_of_later_versions_are_skipped_and_bounded() -> None:
    plain = request_frame(API_VERSIONS, 3, {"client_software_name": "a", "client_software_version": "b"})
    tagged = plain[:-1] + b"\x02\x05\x03abc\x06\x00"
    assert parse_request(tagged).body["client_software_name"] == "a"
    with pytest.raises(Malformed, match="tagged"):
        parse_request(plain[:-1] + b"\xff\x7f")
    with pytest.raises(Malformed, match="32 bits"):
        parse_request(plain[:-1] + b"\xff\xff\xff\xff\xff\x01")


def test_an_unknown_api_and_version_are_malformed_but_for_api_versions() -> None:
    with pytest.raises(Malformed, match="API 999"):
        parse_request((999).to_bytes(2, "big") + bytes(8))
    with pytest.raises(Malformed, match="version 14 of Fetch: 4 to 13"):
        parse_request((1).to_bytes(2, "big") + (14).to_bytes(2, "big") + bytes(8))
    with pytest.raises(UnknownVersion) as seen:
        parse_request((18).to_bytes(2, "big") + (99).to_bytes(2, "big") + (5).to_bytes(4, "big") + b"nonsense")
    assert seen.value.correlation == 5
    answer = b"".join(answer_frame(API_VERSIONS, 0, 5, offered(ErrorCode.UNSUPPORTED_VERSION)))
    found = answer_codec(API_VERSIONS, 0).read(FieldReader(answer[8:]))
    assert found["error_code"] == 35
    assert {each["api_key"]: (each["min_version"], each["max_version"]) for each in found["api_keys"]} == {
        key: (api.least, api.most) for key, api in APIS.items()
    }


@given(st.lists(st.binary(max_size=50), max_size=8), st.data())
def test_frames_are_the_same_however_they_arrive(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(framed, frames))
    cutter, found = FrameCutter(50), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        cutter.receive(stream[:size])
        found += cutter.frames()
        stream = stream[size:]
    assert found == frames


@pytest.mark.parametrize("size", [51, 0x7FFFFFFF, -1, -0x80000000])
def test_a_length_beyond_the_bound_is_refused_before_its_bytes_come(size: int) -> None:
    cutter = FrameCutter(50)
    cutter.receive(framed(b"good") + size.to_bytes(4, "big", signed=True))
    frames = cutter.frames()
    assert next(frames) == b"good"
    with pytest.raises(TooMuch, match=str(size)):
        next(frames)


def test_a_long_client_id_is_cut() -> None:
    frame = request_frame(3, 1, {"topics": None}, client="x" * 32_000)
    assert len(parse_request(frame).client_id) == 256
