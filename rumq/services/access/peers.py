"""What gRPC says of the other end of a call: its address, and its certificate. gRPC's "Name Syntax" of addresses."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from cryptography import x509

from rumq.auth.identity import Certificate
from rumq.net.certificate import common_name, names, rfc2253

PEM = "x509_pem_cert"


def address_of(peer: str) -> str:
    """The address without port of "ipv4:10.0.0.1:4711" or "ipv6:%5Bfe80::1%25eth0%5D:4711"; others as they are."""
    kind, _, rest = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return peer
    return unquote(rest).rpartition(":")[0].strip("[]")


def maybe_certificate(context: Mapping[str, Iterable[bytes]]) -> Certificate | None:
    """The client's certificate, which TLS has verified, as MQTT's listeners see it. context: the call's `auth_context`

    raises: ValueError for one that cannot be read"""
    pem = b"".join(context.get(PEM) or ())
    if not pem:
        return None
    subject = names(ssl.PEM_cert_to_DER_cert(pem.decode())).subject
    return Certificate(common_name(subject) or "", rfc2253(subject), tuple(alternatives(pem)))


def alternatives(pem: bytes) -> list[str]:
    """DNS names, addresses of mail, URIs."""
    try:
        found = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    kinds = (x509.DNSName, x509.RFC822Name, x509.UniformResourceIdentifier)
    return [value for kind in kinds for value in found.value.get_values_for_type(kind)]
