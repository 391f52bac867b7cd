"""PROXY protocol headers, versions 1 and 2: the address and certificate of the client behind a proxy.

https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt, sections 2.1 and 2.2. A header is accepted only from the
proxies that are configured."""

from __future__ import annotations

import ipaddress
import struct
from functools import cache
from typing import NamedTuple

import msgspec

HEADER_BYTES_MAX = 4096  # of version 2; haproxy's own have some hundred
V1_BYTES_MAX = 107
SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
V1 = b"PROXY "
LOCAL, PROXY = 0x20, 0x21
UNSPECIFIED, TCP4, TCP6, UNIX = 0x00, 0x11, 0x21, 0x31
ADDRESS_BYTES = {TCP4: 12, TCP6: 36, UNIX: 216}
ALPN, CHECKSUM, TLS = 0x01, 0x03, 0x20
TLS_COMMON_NAME = 0x22
OVER_TLS, BY_CERTIFICATE = 0x01, 0x06  # shown on this connection, or when its session began
UNIX_PEERS = "unix"


class ProxyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """networks: the trusted proxies, as "10.0.0.0/8" or an address; "unix" for those at a Unix socket"""

    networks: tuple[str, ...]

    def __post_init__(self) -> None:
        """raises: ValueError for what is no network"""
        parsed(self.networks)

    def believes(self, host: str | None) -> bool:
        """host: the address of a proxy, None at a Unix socket"""
        if host is None:
            return UNIX_PEERS in self.networks
        address = ipaddress.ip_address(host.partition("%")[0])
        plain = getattr(address, "ipv4_mapped", None) or address
        return any(plain in network for network in parsed(self.networks))


@cache
def parsed(networks: tuple[str, ...]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    return [ipaddress.ip_network(each) for each in networks if each != UNIX_PEERS]


class BadHeader(ValueError):
    """Bytes that are no PROXY header; the text says why."""


class ProxyHeader(NamedTuple):
    """peer: the client's address, empty if the proxy speaks for itself; tls: whether the client came over TLS;
    common_name: of a certificate that the proxy has verified"""

    size: int
    peer: str = ""
    tls: bool = False
    common_name: str | None = None
    alpn: str = ""


def parse_header(data: bytes) -> ProxyHeader | None:
    """The header that `data` begins with; None while it is not whole. raises: BadHeader"""
    if data[:1] == V1[:1]:
        return version_1(data)
    if SIGNATURE.startswith(data[: len(SIGNATURE)]):
        return version_2(data)
    raise BadHeader(f"no PROXY header before the client's bytes (the first is 0x{data[0]:02X})")


# Version 1


def version_1(data: bytes) -> ProxyHeader | None:
    if not data.startswith(V1[: len(data)]):
        raise BadHeader("no PROXY header before the client's bytes")
    end = data.find(b"\r\n", 0, V1_BYTES_MAX)
    if end < 0:
        if len(data) >= V1_BYTES_MAX:
            raise BadHeader(f"a PROXY header of more than {V1_BYTES_MAX} bytes")
        return None
    parts = data[:end].split(b" ")
    if parts[1] == b"UNKNOWN":
        return ProxyHeader(end + 2)
    if len(parts) != 6 or parts[1] not in (b"TCP4", b"TCP6"):
        raise BadHeader("a PROXY header of another form")
    version = 4 if parts[1] == b"TCP4" else 6
    host, _ = address(parts[2], version), address(parts[3], version)
    number, _ = port(parts[4]), port(parts[5])
    return ProxyHeader(end + 2, f"{host}:{number}")


def address(text: bytes, version: int) -> str:
    try:
        found = ipaddress.ip_address(text.decode("ascii"))
    except ValueError:
        raise BadHeader("a PROXY header whose address is none") from None
    if found.version != version:
        raise BadHeader("a PROXY header whose address is of another family")
    return str(found)


def port(text: bytes) -> int:
    if not text.isdigit() or len(text) > 5 or (text[:1] == b"0" and len(text) > 1) or int(text) > 65535:
        raise BadHeader("a PROXY header whose port is none")
    return int(text)


# Version 2


def version_2(data: bytes) -> ProxyHeader | None:
    if len(data) < 16:
        return None
    command, family, length = struct.unpack_from(">BBH", data, 12)
    size = 16 + length
    if command not in (LOCAL, PROXY):
        raise BadHeader(f"a PROXY header of no known version or command (0x{command:02X})")
    if size > HEADER_BYTES_MAX:
        raise BadHeader(f"a PROXY header of {size} bytes, the limit is {HEADER_BYTES_MAX}")
    if len(data) < size:
        return None
    body = data[16:size]
    if command == LOCAL:
        return ProxyHeader(size)
    if family != UNSPECIFIED and family not in ADDRESS_BYTES:
        raise BadHeader(f"a PROXY header of no known family (0x{family:02X})")
    at = ADDRESS_BYTES.get(family, 0)
    if len(body) < at:
        raise BadHeader("a PROXY header too short for its addresses")
    facts = dict(values(body[at:]))
    if CHECKSUM in facts:
        check(data[:size], facts[CHECKSUM])
    tls, common_name = over_tls(facts[TLS]) if TLS in facts else (False, None)
    return ProxyHeader(size, peer_of(family, body), tls, common_name, facts.get(ALPN, b"").decode("ascii", "replace"))


def peer_of(family: int, body: bytes) -> str:
    if family == TCP4:
        return f"{ipaddress.IPv4Address(body[:4])}:{int.from_bytes(body[8:10], 'big')}"
    if family == TCP6:
        return f"{ipaddress.IPv6Address(body[:16])}:{int.from_bytes(body[32:34], 'big')}"
    if family == UNIX:
        return "unix:" + body[:108].rstrip(b"\0").decode("utf-8", "backslashreplace")
    return ""


def values(data: bytes) -> list[tuple[int, bytes]]:
    """[(type, value)]. 2.2.1"""
    found, at = [], 0
    while at < len(data):
        if at + 3 > len(data):
            raise BadHeader("a PROXY header cut short in its values")
        kind, length = data[at], int.from_bytes(data[at + 1 : at + 3], "big")
        at += 3
        if at + length > len(data):
            raise BadHeader("a PROXY header cut short in its values")
        found.append((kind, data[at : at + length]))
        at += length
    return found


def over_tls(data: bytes) -> tuple[bool, str | None]:
    """Whether the client came over TLS, and who it is by a certificate that was verified. 2.2.6"""
    if len(data) < 5:
        raise BadHeader("a PROXY header cut short in what it says of TLS")
    client, verify = struct.unpack_from(">BI", data)
    name = dict(values(data[5:])).get(TLS_COMMON_NAME)
    if name is None or not client & OVER_TLS or not client & BY_CERTIFICATE or verify:
        return bool(client & OVER_TLS), None
    try:
        text = name.decode("utf-8")
    except UnicodeDecodeError:
        raise BadHeader("a PROXY header whose common name is no UTF-8") from None
    return True, text if text and "\0" not in text else None


def check(header: bytes, told: bytes) -> None:
    """The CRC32C of the header with zeros in its place. 2.2.3"""
    at = header.find(bytes((CHECKSUM, 0, 4)) + told)
    if (
        len(told) != 4
        or at < 0
        or crc32c(header[: at + 3] + bytes(4) + header[at + 7 :]) != int.from_bytes(told, "big")
    ):
        raise BadHeader("a PROXY header whose checksum is wrong")


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 & -(value & 1))
    return value ^ 0xFFFFFFFF
