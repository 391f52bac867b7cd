"""Authentication by the client's certificate, which TLS has verified."""

from __future__ import annotations

from rumq.auth.identity import Credentials, Identity, Steps


class Certificates:
    """part: "common name" or "subject", used as the user name"""

    name = "certificate"

    def __init__(self, part: str) -> None:
        self._part = part

    def check(self, credentials: Credentials) -> Steps:
        found = credentials.certificate
        if found is None:
            return None
        user = found.common_name if self._part == "common name" else found.subject
        if not user:
            return None
        return Identity(user, method=self.name, certificate=found)
        yield  # a generator like the other methods, though it needs no step
