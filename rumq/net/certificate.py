"""A client's certificate: its names, RFC 5280, as text of RFC 2253, like mosquitto's `use_subject_as_username`.

The subject is read from the certificate's own bytes. Python's ssl module gives names without their types and short
forms; `cryptography` (15 µs a certificate, this takes 50) refuses names that OpenSSL accepts and old authorities issue:
Latin-1 in a T61String, "@" in a PrintableString. Every read is bounded by the bytes given."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

SHORT = {
    "2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST",
    "2.5.4.9": "street", "2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.13": "description",
    "2.5.4.15": "businessCategory", "2.5.4.17": "postalCode", "2.5.4.41": "name", "2.5.4.42": "GN",
    "2.5.4.43": "initials", "2.5.4.44": "generationQualifier", "2.5.4.45": "x500UniqueIdentifier",
    "2.5.4.46": "dnQualifier", "2.5.4.65": "pseudonym", "2.5.4.97": "organizationIdentifier",
    "0.9.2342.19200300.100.1.1": "UID", "0.9.2342.19200300.100.1.25": "DC",
    "1.2.840.113549.1.9.1": "emailAddress", "1.2.840.113549.1.9.2": "unstructuredName",
}  # fmt: skip
COMMON_NAME = "2.5.4.3"
ENCODINGS = {
    12: "utf-8", 18: "ascii", 19: "ascii", 20: "latin-1", 22: "ascii", 26: "ascii", 28: "utf-32-be", 30: "utf-16-be",
}  # fmt: skip
SEQUENCE, SET, OID = 0x30, 0x31, 0x06
UTC_TIME, GENERALIZED_TIME = 23, 24
VERSION = 0xA0
OID_BYTES_MAX = 128  # the decimal form of one long number takes time by the square of its length


class PeerCertificate(msgspec.Struct, frozen=True):
    """A client's certificate, verified. not_after: seconds since 1970

    common_name: None if it has none, or one with a NUL in it; subject: RFC 2253, "CN=pump-7,O=Plant"
    """

    common_name: str | None
    subject: str
    dns: tuple[str, ...]
    email: tuple[str, ...]
    uri: tuple[str, ...]
    not_after: float


class Item(NamedTuple):
    """One DER element. X.690, 8.1"""

    tag: int
    start: int  # of the content
    end: int
    begin: int  # of the element


class BadDer(ValueError):
    """Bytes that are no certificate."""


def item_at(der: bytes, at: int, end: int) -> Item:
    """raises: BadDer"""
    if at + 2 > end:
        raise BadDer("cut short")
    length, start = der[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= 4 or start + size > end:
            raise BadDer("a length of no known form")
        length = int.from_bytes(der[start : start + size], "big")
        start += size
    if start + length > end:
        raise BadDer("cut short")
    return Item(der[at], start, start + length, at)


def items(der: bytes, within: Item) -> Iterator[Item]:
    at = within.start
    while at < within.end:
        item = item_at(der, at, within.end)
        yield item
        at = item.end


def oid_text(content: bytes) -> str:
    if len(content) > OID_BYTES_MAX:
        raise BadDer("an object identifier of too many bytes")
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not numbers:
        raise BadDer("an empty object identifier")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


class CertificateNames(NamedTuple):
    """Read from a certificate's bytes. subject: relative names, each [(object identifier, text or None, DER)]"""

    issuer: list[list[tuple[str, str | None, bytes]]]
    subject: list[list[tuple[str, str | None, bytes]]]
    not_before: str
    not_after: str  # "2026-01-27 12:00:00Z"


def names(der: bytes) -> CertificateNames:
    """raises: BadDer"""
    outer = item_at(der, 0, len(der))
    inner = item_at(der, outer.start, outer.end)
    fields = list(items(der, inner))
    if fields and fields[0].tag == VERSION:
        fields = fields[1:]
    if len(fields) < 5:
        raise BadDer("no certificate")
    _, _, issuer, validity, subject = fields[:5]
    times = [time_text(der[i.start : i.end], i.tag) for i in items(der, validity)]
    if len(times) != 2:
        raise BadDer("no time of validity")
    return CertificateNames(relative_names(der, issuer), relative_names(der, subject), times[0], times[1])


def relative_names(der: bytes, name: Item) -> list[list[tuple[str, str | None, bytes]]]:
    found = []
    for relative in items(der, name):
        pairs = []
        for pair in items(der, relative):
            parts = list(items(der, pair))
            if len(parts) != 2 or parts[0].tag != OID:
                raise BadDer("a name without a type")
            key, value = parts
            pairs.append((
                oid_text(der[key.start : key.end]), string(der[value.start : value.end], value.tag),
                der[value.begin : value.end],
            ))  # fmt: skip
        found.append(pairs)
    return found


def string(content: bytes, tag: int) -> str | None:
    encoding = ENCODINGS.get(tag)
    if encoding is None:
        return None
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        return content.decode("latin-1")


def time_text(content: bytes, tag: int) -> str:
    digits = content.decode("ascii", "replace").rstrip("Z")
    if tag == UTC_TIME:
        digits = ("19" if digits[:2] >= "50" else "20") + digits  # RFC 5280, 4.1.2.5.1
    elif tag != GENERALIZED_TIME:
        raise BadDer("no time")
    d = digits
    return f"{d[:4]}-{d[4:6]}-{d[6:8]} {d[8:10]}:{d[10:12]}:{d[12:14] or '00'}Z"


def rfc2253(relative: list[list[tuple[str, str | None, bytes]]]) -> str:
    """A name as text, its last part first, as `openssl x509 -nameopt RFC2253` writes it."""
    return ",".join(["+".join([attribute_text(*pair) for pair in reversed(pairs)]) for pairs in reversed(relative)])


def attribute_text(oid: str, text: str | None, der: bytes) -> str:
    short = SHORT.get(oid)
    if short is None or text is None:
        return f"{short or oid}=#{der.hex().upper()}"
    return f"{short}={escaped(text)}"


def escaped(text: str) -> str:
    """RFC 2253, 2.4; characters other than printable ASCII as the hex digits of their UTF-8."""
    out = []
    for at, char in enumerate(text):
        if char in ',+"\\<>;' or (char == "#" and at == 0) or (char == " " and at in (0, len(text) - 1)):
            out.append("\\" + char)
        elif " " <= char <= "~":
            out.append(char)
        else:
            out.extend(f"\\{byte:02X}" for byte in char.encode())
    return "".join(out)


def common_name(relative: list[list[tuple[str, str | None, bytes]]]) -> str | None:
    """The first one; None if it has a NUL, at which C programs would cut it."""
    for pairs in relative:
        for oid, text, _ in pairs:
            if oid == COMMON_NAME:
                return text if text and "\0" not in text else None
    return None


def peer_certificate(der: bytes, decoded: dict[str, Any]) -> PeerCertificate:
    """der, decoded: as `SSLObject.getpeercert` gives them. raises: BadDer"""
    found = names(der)
    alternatives = decoded.get("subjectAltName", ())

    def of_kind(kind: str) -> tuple[str, ...]:
        return tuple(value for name, value in alternatives if name == kind)

    not_after = float(ssl.cert_time_to_seconds(decoded["notAfter"]))
    return PeerCertificate(
        common_name(found.subject),
        rfc2253(found.subject),
        of_kind("DNS"),
        of_kind("email"),
        of_kind("URI"),
        not_after,
    )
