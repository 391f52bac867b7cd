"""A user name that the gateway vouches for: it has checked a token, and nobody else can open its socket.

So a client that comes through it has the sessions of its user, as at any listener, and no others. The connections on
which the gateway itself publishes are none of these clients: they name themselves by a password, which the gateway
sends for nobody else."""

from __future__ import annotations

from rumq.auth.identity import BROKERS_OWN, GATEWAYS_OWN, Credentials, Identity, Steps

# No secrets: they are taken on the gateway's socket alone.
OWN_PASSWORD = b"own"  # of connections for a user, whose rules hold
BROKERS_PASSWORD = b"broker"  # of connections for nobody, as of queues' definitions: no rules hold


class Vouched:
    name = "gateway"

    def check(self, credentials: Credentials) -> Steps:
        """Whoever has a name; one without is anonymous."""
        yield from ()
        if credentials.password == OWN_PASSWORD:
            return Identity(credentials.username, method=GATEWAYS_OWN)
        if credentials.password == BROKERS_PASSWORD and credentials.username is None:
            return Identity(method=BROKERS_OWN)
        if credentials.username is None:
            return None
        return Identity(credentials.username, method=self.name)
