"""Address, credentials and timeouts of a Flight server: plain data that Spark pickles and sends to its workers.

It has the names of secret files, not their content."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

PORT = 8815
SCHEMES = ("grpc", "grpc+tls")
ADDRESS = "grpc://host:8815 or grpc+tls://host:8815; of a cluster those of its nodes, with commas between them"


@dataclass(frozen=True)
class FlightLocation:
    """address: grpc://host:port or grpc+tls://host:port, as of `address_of`; files are read when they are used

    read_seconds_max: between two batches, and for any other answer
    retries: of a call without answer; retry_seconds: before the first, doubled before each further one
    away_seconds_max: how long to wait for a server that has answered before
    copies: addresses of further servers of the same log, nodes of a cluster
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
    copies: tuple[str, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        return (self.address, *self.copies)


def maybe_address(text: str) -> str | None:
    """The address with its port; None if it is invalid."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in SCHEMES or not parts.hostname or parts.path.strip("/") or parts.query or parts.username:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or PORT}"


def maybe_addresses(text: str) -> tuple[str, ...] | None:
    """Of one server, or of several with commas between them, all with or all without TLS; None if one is invalid."""
    found = [maybe_address(each.strip()) for each in text.split(",")]
    valid = tuple(dict.fromkeys(each for each in found if each is not None))
    if None in found or len({each.partition(":")[0] for each in valid}) != 1:
        return None
    return valid
