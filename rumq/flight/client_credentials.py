"""The authorization header and the TLS files of a Flight client, read from disk when they are used."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from pathlib import Path

from rumq.flight.errors import Away
from rumq.table.flight_location import FlightLocation


def header_of(location: FlightLocation) -> str | None:
    """The authorization header; reads its files each time, because tokens are short-lived. raises: Away"""
    if location.token_file is not None:
        return "Bearer " + text_of(location, location.token_file).strip()
    if location.username is not None:
        password = text_of(location, location.password_file).strip() if location.password_file is not None else ""
        return basic(location.username, password)
    return None


def basic(user: str, password: str) -> str:
    """HTTP Basic, RFC 7617."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def tls_of(location: FlightLocation) -> Mapping[str, bytes]:
    """TLS arguments of a client, as bytes of PEM. raises: Away for invalid files"""
    if not location.address.startswith("grpc+tls"):
        return {}
    found: dict[str, bytes] = {}
    if location.tls_ca is not None:
        found["tls_root_certs"] = text_of(location, location.tls_ca).encode()
        try:
            # gRPC would only log the fault.
            ssl.create_default_context(cafile=location.tls_ca)
        except ssl.SSLError:
            raise Away(location.address, f"{location.tls_ca} (tlsCa) holds no certificates in PEM") from None
    if location.tls_certificate is not None:
        key = location.tls_key or location.tls_certificate
        found["cert_chain"] = text_of(location, location.tls_certificate).encode()
        found["private_key"] = text_of(location, key).encode()
        try:
            ssl.create_default_context().load_cert_chain(location.tls_certificate, key, lambda: "")
        except (ssl.SSLError, OSError):
            files = f"{location.tls_certificate}, {key} (tlsCertificate, tlsKey)"
            raise Away(location.address, f"{files} are no certificate and its key in PEM") from None
    return found


def text_of(location: FlightLocation, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or "it is not text"
        raise Away(location.address, f"{path} cannot be read on this machine: {why}") from None
