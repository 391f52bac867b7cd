"""What a stranger said instead of CONNECT, in plain words for the operator. MQTT 5.0, 3.1."""

from __future__ import annotations

METHODS = (
    b"GET ",
    b"POST ",
    b"PUT ",
    b"HEAD ",
    b"DELETE ",
    b"OPTIONS ",
    b"PATCH ",
    b"CONNECT ",
    b"PRI * HTTP",
)


TLS_RECORD = 0x16
# A TLS client calls this "wrong version number", its words for a port without TLS; of silence it makes nothing.
NO_TLS = b"no TLS\r\n"


def describe(first: bytes) -> str:
    """Name the protocol that the first bytes of a connection belong to, as far as they tell."""
    if first[0] == TLS_RECORD:
        return "a TLS hello on a plain port: the client wants TLS, this listener speaks plain MQTT"
    if first.startswith(METHODS):
        return "an HTTP request on an MQTT port"
    if first.startswith(b"SSH-"):
        return "an SSH client on an MQTT port"
    if first.startswith((b"PROXY ", b"\r\n\r\n\x00\r\nQUIT\n")):
        return "a PROXY protocol header, and this listener expects none"
    return f"the first packet is not CONNECT (it begins with 0x{first[0]:02X})"
