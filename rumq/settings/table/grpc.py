"""The table of settings, continued: [grpc]."""

from typing import Annotated, Literal

from msgspec import Struct

from rumq.settings.types.setting_types import GRPC_PORT, KIB, LIVE, MIB, RESTART, choice, maybe_text, number, text

# fmt: off
# A table: a formatter would give each argument a line.


class Grpc(Struct, frozen=True, kw_only=True):
    """gRPC server: topics for programs, by rumq.v1, from a process of its own: docs/reference/grpc.md.
    Users are those of [auth], tokens and rules those of [gateway]. Requires the extra "grpc".
    """

    host: Annotated[str, text('address to listen on; "*": every address', RESTART, 255)] = "localhost"
    port: Annotated[
        int, number(
            f"TCP port, usually {GRPC_PORT}; 0: no gRPC server; -1: any free port, which listener.bound reports",
            RESTART, "", -1, 65_535, usual=GRPC_PORT
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
    certificate_as_user: Annotated[
        Literal["no", "common name", "subject"], choice(
            "the user of a client certificate, for callers that give no other login", RESTART
        )
    ] = "common name"
    anonymous: Annotated[
        Literal["auth", "auto", "yes", "no"], choice(
            'callers without a login are accepted; "auth": as auth.anonymous says', LIVE
        )
    ] = "auth"
    password_file: Annotated[str, maybe_text("password file of gRPC; empty: auth.password_file", LIVE)] = ""
    calls_max: Annotated[
        int, number(
            "calls that are open at once, such as subscriptions; half of them of a network, half of a user, 100 of a "
            "connection; more are refused", RESTART, "calls", 1, 100_000
        )
    ] = 1_000
    request_bytes_max: Annotated[
        int, number("largest request of a call", RESTART, "bytes", 64 * KIB, 1024 * MIB)
    ] = 4 * MIB
    request_messages_max: Annotated[
        int, number("messages of one request of PublishStream", RESTART, "messages", 1, 1_000_000)
    ] = 10_000
    waiting_bytes_max: Annotated[
        int, number(
            "messages that wait for the broker's acknowledgement; half of them of a network, half of a user; beyond it "
            "streams are not read, and Publish is refused", RESTART, "bytes", MIB, 65_536 * MIB
        )
    ] = 128 * MIB
    drain_seconds_max: Annotated[
        float, number("at a stop, calls may go on for so long", RESTART, "seconds", 0, 60)
    ] = 2.0
