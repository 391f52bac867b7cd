"""Payloads as values of a type, in JSON or MessagePack, by the content type of MQTT 5 (3.3.2.3.9).

A payload that does not fit is a `PayloadMismatch`, never another error. Knows no topic and no client."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

import msgspec

from rumq.errors import ClientError

T = TypeVar("T")
Encoding = Literal["json", "msgpack"]
CONTENT_TYPES: dict[Encoding, str] = {"json": "application/json", "msgpack": "application/msgpack"}
# What others call them: RFC 6838 and 6839, IANA's table of media types.
JSON_TYPES = frozenset({"application/json", "text/json"})
MSGPACK_TYPES = frozenset({"application/msgpack", "application/x-msgpack", "application/vnd.msgpack"})


class PayloadMismatch(ClientError):
    """A payload that does not fit the type of its topic.

    offset: in the topic, if the broker said it: a subscription with `from_`, MQTT 5; problem: what was wrong, and where
    """

    def __init__(self, topic: str, offset: int | None, problem: str) -> None:
        super().__init__(topic, offset, problem)
        self.topic, self.offset, self.problem = topic, offset, problem

    def __str__(self) -> str:
        at = "" if self.offset is None else f" at offset {self.offset}"
        return f"topic {self.topic}{at}: {self.problem}"


class PayloadCodec(Generic[T]):
    def __init__(self, kind: type[T], encoding: Encoding) -> None:
        """kind: what msgspec can decode to: a Struct, a dataclass, list[float]. raises: TypeError, ValueError"""
        if encoding not in CONTENT_TYPES:
            raise ValueError(f"encoding {encoding!r}: expected {' or '.join(CONTENT_TYPES)}")
        self.kind, self.encoding = kind, encoding
        self.content_type = CONTENT_TYPES[encoding]
        self._encode = msgspec.json.encode if encoding == "json" else msgspec.msgpack.encode
        self._decoders: dict[str, Any] = {
            "json": msgspec.json.Decoder(kind),
            "msgpack": msgspec.msgpack.Decoder(kind),
        }

    def encode(self, value: T) -> bytes:
        """raises: TypeError for a value of another type, also in a field: what cannot be read back is not sent

        cost: it is read back"""
        payload = self._encode(value)
        try:
            self._decoders[self.encoding].decode(payload)
        except msgspec.DecodeError as fault:
            raise TypeError(f"{value!r} is no {named(self.kind)}: {fault}") from None
        return payload

    def decode(self, payload: bytes, content_type: str | None) -> T:
        """content_type: of the message; None or empty: the encoding of this codec

        raises: msgspec.DecodeError, ValueError, with what is wrong"""
        encoding = maybe_encoding(content_type) if content_type else self.encoding
        if encoding is None:
            raise ValueError(f"the content type is {content_type!r}: expected {' or '.join(CONTENT_TYPES.values())}")
        value: T = self._decoders[encoding].decode(payload)
        return value


def maybe_encoding(content_type: str) -> Encoding | None:
    """That of a media type; its parameters, such as a charset, are left out."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in JSON_TYPES or media_type.endswith("+json"):
        return "json"
    if media_type in MSGPACK_TYPES or media_type.endswith("+msgpack"):
        return "msgpack"
    return None


def named(kind: object) -> str:
    return getattr(kind, "__name__", None) or str(kind)
