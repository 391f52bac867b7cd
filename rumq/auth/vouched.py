"""A user name that the gateway vouches for: it has checked a token, and nobody else can open its socket.

So a client that comes through it has the sessions of its user, as at any listener, and no others."""

from __future__ import annotations

from rumq.auth.identity import Credentials, Identity, Steps


class Vouched:
    name = "gateway"

    def check(self, credentials: Credentials) -> Steps:
        """Whoever has a name; one without is anonymous."""
        yield from ()
        if credentials.username is None:
            return None
        return Identity(credentials.username, method=self.name)
