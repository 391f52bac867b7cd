"""The types of Kafka's messages and how each is read and written. https://kafka.apache.org/protocol#protocol_types

A message is a tuple of `Field`s; `codec_of` makes of them a reader and a writer for one version. Every length is
checked against what is left of the frame before anything is taken, and a frame has a bounded number of elements, so
that what a request takes in memory is a small multiple of its bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rumq.kafka.protocol.errors import Malformed

ELEMENTS_MAX = 10_000  # of all arrays of a request together
TAGGED_MAX = 100  # fields that a later version has added, of one structure
VARINT_BYTES_MAX = 5
ALWAYS, NEVER = 0, 1 << 15
INT8, INT16, INT32, INT64, BOOL, UUID = "int8", "int16", "int32", "int64", "bool", "uuid"
STRING, BYTES, RECORDS = "string", "bytes", "records"
NUMBERS = {
    INT8: struct.Struct(">b"),
    INT16: struct.Struct(">h"),
    INT32: struct.Struct(">i"),
    INT64: struct.Struct(">q"),
}
NO_UUID = bytes(16)
Values = Mapping[str, Any]


class Field(NamedTuple):
    """One field of a message. kind: a type of above, or an `Array`; since, until: versions that have it

    nullable: since which version it may be null; default: where a version has none, or nothing is given; of an array
    nothing is an empty one"""

    name: str
    kind: str | Array
    since: int = ALWAYS
    until: int = NEVER
    nullable: int = NEVER
    default: Any = 0

    @property
    def nothing(self) -> Any:
        return () if isinstance(self.kind, Array) and self.default == 0 else self.default


class Array(NamedTuple):
    """of: a type of above, or the fields of a structure"""

    of: str | tuple[Field, ...]


class FieldReader:
    """The rest of a frame."""

    __slots__ = ("_at", "_data", "_elements")

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._elements = data, 0, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def number(self, layout: struct.Struct) -> int:
        """raises: Malformed"""
        at = self._at
        if layout.size > len(self._data) - at:
            raise Malformed("a frame that ends within a number")
        self._at = at + layout.size
        found: int = layout.unpack_from(self._data, at)[0]
        return found

    def varint(self) -> int:
        """Unsigned. raises: Malformed"""
        value = 0
        for place in range(VARINT_BYTES_MAX):
            if self._at >= len(self._data):
                raise Malformed("a frame that ends within a number")
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 127) << 7 * place
            if byte < 128:
                return value
        raise Malformed("a number of more than 32 bits")

    def take(self, size: int) -> bytes:
        """raises: Malformed"""
        at = self._at
        if size < 0 or size > len(self._data) - at:
            raise Malformed(f"a length of {size} where {len(self._data) - at} bytes are left")
        self._at = at + size
        return self._data[at : at + size]

    def count(self, count: int) -> int:
        """Of an array. raises: Malformed"""
        self._elements += count
        if count < 0 or count > self.left or self._elements > ELEMENTS_MAX:
            raise Malformed(f"an array of {count} elements where {self.left} bytes are left")
        return count

    def skip_tagged(self) -> None:
        """Fields that a later version has added. raises: Malformed"""
        count = self.varint()
        if count > TAGGED_MAX:
            raise Malformed(f"{count} tagged fields")
        for _ in range(count):
            self.varint()
            self.take(self.varint())


class FieldWriter:
    """A frame in parts: records are parts of their own, so that nobody copies them."""

    __slots__ = ("_open", "_parts")

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray | memoryview] = []
        self._open = bytearray()

    def add(self, data: bytes) -> None:
        self._open += data

    def varint(self, value: int) -> None:
        while value > 127:
            self._open.append(value & 127 | 128)
            value >>= 7
        self._open.append(value)

    def part(self, data: bytes | bytearray | memoryview) -> None:
        self._parts += [self._open, data]
        self._open = bytearray()

    def parts(self) -> list[bytes | bytearray | memoryview]:
        return [*self._parts, self._open]


Read = Callable[[FieldReader], Any]
Write = Callable[[FieldWriter, Any], None]


class Codec(NamedTuple):
    """Of one message in one version."""

    read: Callable[[FieldReader], dict[str, Any]]
    write: Callable[[FieldWriter, Values], None]


def codec_of(fields: Sequence[Field], version: int, *, flexible: bool) -> Codec:
    """flexible: lengths are varints, and structures end with tagged fields"""
    readers: list[tuple[str, Read]] = []
    writers: list[tuple[str, Any, Write]] = []
    absent: dict[str, Any] = {}
    for field in fields:
        if field.since <= version <= field.until:
            made = of_kind(field.kind, version, flexible, is_nullable=version >= field.nullable)
            readers.append((field.name, made[0]))
            writers.append((field.name, field.nothing, made[1]))
        else:
            absent[field.name] = field.nothing

    def read(reader: FieldReader) -> dict[str, Any]:
        found = dict(absent)
        for name, read_one in readers:
            found[name] = read_one(reader)
        if flexible:
            reader.skip_tagged()
        return found

    def write(writer: FieldWriter, values: Values) -> None:
        for name, default, write_one in writers:
            write_one(writer, values.get(name, default))
        if flexible:
            writer.varint(0)

    return Codec(read, write)


def of_kind(kind: str | Array, version: int, flexible: bool, *, is_nullable: bool) -> tuple[Read, Write]:
    if isinstance(kind, Array):
        return array_of(kind, version, flexible, is_nullable=is_nullable)
    if kind in NUMBERS:
        layout = NUMBERS[kind]
        return (lambda reader: reader.number(layout)), (lambda writer, value: writer.add(layout.pack(value)))
    if kind == BOOL:
        one = NUMBERS[INT8]
        return (lambda reader: reader.number(one) != 0), (lambda writer, value: writer.add(one.pack(bool(value))))
    if kind == UUID:
        return (lambda reader: reader.take(16)), (lambda writer, value: writer.add(value or NO_UUID))
    return sized(kind, flexible, is_nullable=is_nullable)


def length_of(kind: str, flexible: bool) -> tuple[Callable[[FieldReader], int], Callable[[FieldWriter, int], None]]:
    """Read and write a length; -1: null. A compact length is one more than it says, 0: null."""
    if flexible:
        return (lambda reader: reader.varint() - 1), (lambda writer, size: writer.varint(size + 1))
    layout = NUMBERS[INT16 if kind == STRING else INT32]
    return (lambda reader: reader.number(layout)), (lambda writer, size: writer.add(layout.pack(size)))


def sized(kind: str, flexible: bool, *, is_nullable: bool) -> tuple[Read, Write]:
    """Text, bytes and records."""
    read_length, write_length = length_of(kind, flexible)

    def read(reader: FieldReader) -> Any:
        size = read_length(reader)
        if size == -1:
            if is_nullable:
                return None
            raise Malformed("null where something is needed")
        data = reader.take(size)
        if kind != STRING:
            return data
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise Malformed("text that is no UTF-8") from None

    def write(writer: FieldWriter, value: Any) -> None:
        if value is None:
            return write_length(writer, -1)
        if kind == RECORDS:
            write_length(writer, sum(map(len, value)))
            for part in value:
                writer.part(part)
            return None
        data = value.encode() if kind == STRING else value
        write_length(writer, len(data))
        writer.add(data)
        return None

    return read, write


def array_of(array: Array, version: int, flexible: bool, *, is_nullable: bool) -> tuple[Read, Write]:
    read_length, write_length = length_of(BYTES, flexible)
    if isinstance(array.of, str):
        read_one, write_one = of_kind(array.of, version, flexible, is_nullable=False)
    else:
        read_one, write_one = codec_of(array.of, version, flexible=flexible)

    def read(reader: FieldReader) -> list[Any] | None:
        count = read_length(reader)
        if count == -1:
            if is_nullable:
                return None
            raise Malformed("null where a list is needed")
        return [read_one(reader) for _ in range(reader.count(count))]

    def write(writer: FieldWriter, values: Any) -> None:
        if values is None:
            return write_length(writer, -1)
        write_length(writer, len(values))
        for value in values:
            write_one(writer, value)
        return None

    return read, write
