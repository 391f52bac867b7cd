"""Where the log is served, and how to come in: what a client is made of. Plain data that travels to Spark's workers, so
it names files of secrets and holds none. Knows no gRPC."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rumq.flight.errors import Away

PORT = 8815
SCHEMES = ("grpc", "grpc+tls")
ADDRESS = "grpc://host:8815 or grpc+tls://host:8815"


@dataclass(frozen=True)
class FlightLocation:
    """address: grpc://host:port or grpc+tls://host:port, as `address_of` gives it; files are read where they are used

    read_seconds_max: between two batches, and for any other answer
    retries: of a call that found nobody; retry_seconds: before the first, twice as long before each further one
    away_seconds_max: besides, for how long somebody who has answered before may be away
    """

    address: str
    username: str | None = None
    password_file: str | None = None
    token_file: str | None = None
    tls_ca: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    read_seconds_max: float = 120.0
    retries: int = 3
    retry_seconds: float = 1.0
    away_seconds_max: float = 0.0


def maybe_address(text: str) -> str | None:
    """The address with its port; None for what is none."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if (
        parts.scheme not in SCHEMES
        or not parts.hostname
        or parts.path.strip("/")
        or parts.query
        or parts.username
    ):
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or PORT}"


def header_of(where: FlightLocation) -> str | None:
    """The authorization header, from its files as they are now: tokens are short-lived. raises: Away"""
    if where.token_file is not None:
        return "Bearer " + text_of(where, where.token_file).strip()
    if where.username is not None:
        password = text_of(where, where.password_file).strip() if where.password_file is not None else ""
        return basic(where.username, password)
    return None


def basic(user: str, password: str) -> str:
    """HTTP's Basic, RFC 7617."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def tls_of(where: FlightLocation) -> Mapping[str, bytes]:
    """What a client is given for TLS, as bytes of PEM. raises: Away for files that cannot be it"""
    if not where.address.startswith("grpc+tls"):
        return {}
    found: dict[str, bytes] = {}
    if where.tls_ca is not None:
        found["tls_root_certs"] = text_of(where, where.tls_ca).encode()
        try:
            # gRPC would only log what is wrong with it.
            ssl.create_default_context(cafile=where.tls_ca)
        except ssl.SSLError:
            raise Away(where.address, f"{where.tls_ca} (tlsCa) holds no certificates in PEM") from None
    if where.tls_certificate is not None:
        key = where.tls_key or where.tls_certificate
        found["cert_chain"] = text_of(where, where.tls_certificate).encode()
        found["private_key"] = text_of(where, key).encode()
        try:
            ssl.create_default_context().load_cert_chain(where.tls_certificate, key, lambda: "")
        except (ssl.SSLError, OSError):
            files = f"{where.tls_certificate}, {key} (tlsCertificate, tlsKey)"
            raise Away(where.address, f"{files} are no certificate and its key in PEM") from None
    return found


def text_of(where: FlightLocation, path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or "it is not text"
        raise Away(where.address, f"{path} cannot be read on this machine: {why}") from None


def why_away(text: str) -> str:
    """What gRPC says when nobody answers, as a sentence with the way out."""
    for sign, why in SIGNS:
        if sign in text:
            return why
    words = text.rpartition("last error: ")[2] or text
    return words.partition(". gRPC client debug")[0][:300]


SIGNS = (
    ("Connection refused", "nobody listens there; a broker serves it where [flight] port is set"),
    ("resolving", "there is no machine of this name"),
    ("lookup failed", "there is no machine of this name"),
    ("wrong version number", "it speaks no TLS there: write grpc://"),
    ("not in peer certificate", "its certificate is for another name than this address has"),
    ("ostname verification", "its certificate is for another name than this address has"),
    ("certificate verify failed", "its certificate comes from an authority that tlsCa does not name"),
    ("parsing HTTP/2", "what answers there does not speak Flight: is it the port of [flight]?"),
    (
        "Socket closed",
        "the connection was closed: is it the port of [flight], and does it want TLS (grpc+tls://) or a client "
        "certificate (tlsCertificate)?",
    ),
    ("eadline", "no answer in time (readTimeoutMs)"),
)
# What no restart ends, and is not waited for.
LASTING = frozenset(
    why for sign, why in SIGNS if sign not in ("Connection refused", "Socket closed", "eadline")
)
