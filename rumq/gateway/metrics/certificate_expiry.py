"""When the certificates of this node expire, from their files: for /metrics and its alert.

A file that holds no certificate now keeps what it said before, as its owner goes on with that (certificate.refused)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import trio
from cryptography import x509

LOOK_SECONDS = 30.0


class CertificateState(NamedTuple):
    """expires_at: seconds since 1970; is_usable: the file says so now"""

    expires_at: float
    is_usable: bool


class CertificateExpiry:
    """states: by (whose it is, path), of files that held a certificate once"""

    def __init__(self, files: Callable[[], Mapping[tuple[str, str], str]]) -> None:
        """files: path of each certificate, by whose it is and the path"""
        self._files = files
        self.states: dict[tuple[str, str], CertificateState] = {}

    def look(self) -> None:
        """Read all again. cost: a read of each file"""
        found = {}
        for key, path in self._files().items():
            before = self.states.get(key)
            expires_at = maybe_expiry(path)
            if expires_at is not None:
                found[key] = CertificateState(expires_at, True)
            elif before is not None:
                found[key] = before._replace(is_usable=False)
        self.states = found

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await trio.to_thread.run_sync(self.look)
            await trio.sleep(LOOK_SECONDS)


def maybe_expiry(path: str) -> float | None:
    """Of the first certificate of a PEM file, which is the owner's own, or of one of its chain that ends earlier."""
    try:
        with open(path, "rb") as file:
            chain = x509.load_pem_x509_certificates(file.read())
    except (OSError, ValueError):
        return None
    return min(each.not_valid_after_utc.timestamp() for each in chain)
