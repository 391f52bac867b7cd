"""The client's certificate, which TLS has checked already, says who it is. Knows no TLS."""

from __future__ import annotations

from rumq.auth.identity import Credentials, Identity, Steps


class Certificates:
    """part: "common name" or "subject", which of it is the name of the user"""

    name = "certificate"

    def __init__(self, part: str) -> None:
        self._part = part

    def check(self, shown: Credentials) -> Steps:
        found = shown.certificate
        if found is None:
            return None
        user = found.common_name if self._part == "common name" else found.subject
        if not user:
            return None
        return Identity(user, method=self.name, certificate=found)
        yield  # a generator as the other methods are, though it asks for nothing
