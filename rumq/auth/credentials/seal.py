"""Sealed tokens: text that only this process can read or make, for a client to return. AES-GCM; time is an argument."""

from __future__ import annotations

import base64
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES = 12
UNTIL_BYTES = 8


class Seal:
    """The key lives as long as this object."""

    def __init__(self) -> None:
        self._cipher = AESGCM(AESGCM.generate_key(128))

    def sealed(self, text: str, until: int) -> str:
        """until: seconds on the clock of `maybe_opened`; 0 or more"""
        nonce = secrets.token_bytes(NONCE_BYTES)
        made = self._cipher.encrypt(nonce, until.to_bytes(UNTIL_BYTES) + text.encode(), None)
        return base64.urlsafe_b64encode(nonce + made).decode()

    def maybe_opened(self, value: str, now: float) -> str | None:
        """The text; None if it was not sealed here, or has expired."""
        try:
            made = base64.urlsafe_b64decode(value)
            found = self._cipher.decrypt(made[:NONCE_BYTES], made[NONCE_BYTES:], None)
        except (ValueError, InvalidTag):
            return None
        if int.from_bytes(found[:UNTIL_BYTES]) <= now:
            return None
        return found[UNTIL_BYTES:].decode()
