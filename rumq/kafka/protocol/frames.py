"""Frames of a connection: cut from bytes however they arrive, read as requests, and answers as frames.

A frame is four bytes of length, a header and a message. A length is believed only up to a bound, and before its bytes
are there they take no room. https://kafka.apache.org/protocol#protocol_messages"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rumq.kafka.protocol.apis import API_VERSIONS, APIS, answer_codec, request_codec
from rumq.kafka.protocol.errors import ErrorCode, Malformed, TooMuch
from rumq.kafka.protocol.fields import INT16, INT32, NUMBERS, STRING, FieldReader, FieldWriter, Values, sized

LENGTH_BYTES = 4
CLIENT_ID_CHARACTERS_MAX = 256  # of which are kept
read_client_id, _ = sized(STRING, False, is_nullable=True)
Part = bytes | bytearray | memoryview


class KafkaRequest(NamedTuple):
    """api: a key of APIS; body: by the names of its fields"""

    api: int
    version: int
    correlation: int
    client_id: str
    body: dict[str, Any]


class UnknownVersion(Malformed):
    """A version of ApiVersions that is not offered: answered, so that the client tries another one."""

    def __init__(self, correlation: int) -> None:
        super().__init__("a version of ApiVersions that is not offered")
        self.correlation = correlation


class FrameCutter:
    """bytes_max: of one frame, without its length; may change between frames"""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._buffer = bytearray()

    def receive(self, data: bytes | bytearray) -> None:
        self._buffer += data

    @property
    def has_part(self) -> bool:
        """Whether something is there, of a frame that is not whole once `frames` has ended."""
        return bool(self._buffer)

    def frames(self) -> Iterator[bytes]:
        """Each whole frame, without its length. raises: TooMuch, after the good ones before it"""
        while len(self._buffer) >= LENGTH_BYTES:
            size = int.from_bytes(self._buffer[:LENGTH_BYTES], "big", signed=True)
            if not 0 <= size <= self.bytes_max:
                raise TooMuch(f"a frame of {size} bytes: at most {self.bytes_max} are taken")
            if len(self._buffer) < LENGTH_BYTES + size:
                return
            frame = bytes(memoryview(self._buffer)[LENGTH_BYTES : LENGTH_BYTES + size])
            del self._buffer[: LENGTH_BYTES + size]
            yield frame


def parse_request(frame: bytes) -> KafkaRequest:
    """raises: Malformed, UnknownVersion"""
    reader = FieldReader(frame)
    key, version = reader.number(NUMBERS[INT16]), reader.number(NUMBERS[INT16])
    correlation = reader.number(NUMBERS[INT32])
    api = APIS.get(key)
    if api is None:
        raise Malformed(f"API {key}, which is not offered")
    if not api.least <= version <= api.most:
        if key == API_VERSIONS:
            raise UnknownVersion(correlation)
        raise Malformed(f"version {version} of {api.name}: {api.least} to {api.most} are offered")
    client_id = read_client_id(reader) or ""
    if api.is_flexible(version):
        reader.skip_tagged()
    try:
        body = request_codec(key, version).read(reader)
    except Malformed as fault:
        raise Malformed(f"{api.name} {version}: {fault.why}") from None
    # Bytes that are left are ignored: librdkafka 2.16 asks for all topics with three too many.
    return KafkaRequest(key, version, correlation, client_id[:CLIENT_ID_CHARACTERS_MAX], body)


def answer_frame(api: int, version: int, correlation: int, body: Values) -> list[Part]:
    """The frame with its length, in parts."""
    writer = FieldWriter()
    writer.add(NUMBERS[INT32].pack(correlation))
    if APIS[api].is_flexible(version) and api != API_VERSIONS:
        writer.varint(0)  # no tagged fields; clients do not know yet which version ApiVersions is answered in
    answer_codec(api, version).write(writer, body)
    parts = writer.parts()
    return [NUMBERS[INT32].pack(sum(map(len, parts))), *parts]


def offered(error: ErrorCode = ErrorCode.NONE) -> dict[str, Any]:
    """The body of ApiVersions' answer."""
    keys = [{"api_key": api.key, "min_version": api.least, "max_version": api.most} for api in APIS.values()]
    return {"error_code": error, "api_keys": keys}
