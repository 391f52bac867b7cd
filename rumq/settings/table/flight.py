"""The table of settings, continued: [flight]."""

from typing import Annotated, Literal

from msgspec import Struct

from rumq.settings.types.setting_types import FLIGHT_PORT, LIVE, RESTART, choice, maybe_text, number, text

# fmt: off
# A table: a formatter would give each argument a line.


class Flight(Struct, frozen=True, kw_only=True):
    """Arrow Flight server: the log for Spark and other Arrow clients, from a read-only process: docs/guides/spark.md.
    Users and rules are those of [auth]. Requires the extra "flight".
    """

    host: Annotated[str, text('address to listen on; "*": every address', RESTART, 255)] = "localhost"
    port: Annotated[
        int, number(
            f"TCP port, usually {FLIGHT_PORT}; 0: no Flight server; -1: any free port, which listener.bound reports",
            RESTART, "", -1, 65_535, usual=FLIGHT_PORT
        )
    ] = 0
    tls_certificate: Annotated[
        str, maybe_text("PEM file of the server certificate and its chain; enables TLS", RESTART)
    ] = ""
    tls_key: Annotated[
        str, maybe_text("PEM file of the private key, readable only by its owner; empty: in tls_certificate", RESTART)
    ] = ""
    tls_authority: Annotated[
        str, maybe_text("PEM file of the authorities that sign client certificates; makes them mandatory", RESTART)
    ] = ""
    anonymous: Annotated[
        Literal["auth", "auto", "yes", "no"], choice(
            'clients without user name are accepted; "auth": as auth.anonymous says', LIVE
        )
    ] = "auth"
    password_file: Annotated[str, maybe_text("password file of Flight; empty: auth.password_file", LIVE)] = ""
    rules_file: Annotated[
        str, maybe_text(
            'rules, of which the action "replay" applies; empty: auth.rules_file; docs/guides/security.md',
            LIVE
        )
    ] = ""
