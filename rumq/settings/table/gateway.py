"""The table of settings, continued: [gateway]."""

from typing import Annotated, Literal

from msgspec import Struct

from rumq.settings.types.setting_types import (
    GATEWAY_PORT,
    KIB,
    LIVE,
    MIB,
    RESTART,
    choice,
    listed,
    maybe_text,
    number,
    text,
)


# fmt: off
# A table: a formatter would give each argument a line.
class Gateway(Struct, frozen=True, kw_only=True):
    """HTTP gateway: the page, REST, metrics and health, in its own process: docs/reference/gateway.md."""

    host: Annotated[str, text('address to listen on; "*": every address', RESTART, 255)] = "localhost"
    port: Annotated[
        int, number(
            f"TCP port, usually {GATEWAY_PORT}; 0: no gateway; -1: any free port, which listener.bound reports",
            RESTART, "", -1, 65_535, usual=GATEWAY_PORT
        )
    ] = 0
    tokens_file: Annotated[
        str, maybe_text("file of tokens, made by rumqd token; empty: gateway-tokens in the data directory", LIVE)
    ] = ""
    rules_file: Annotated[
        str, maybe_text(
            "rules of what users of tokens may do, on topics as they are in the log; empty: auth.rules_file; "
            "docs/guides/security.md", LIVE
        )
    ] = ""
    hosts: Annotated[
        tuple[str, ...], listed(
            'host names that clients may ask for, besides addresses; "*": any; empty: localhost alone if host is a '
            "loopback address, else any", RESTART, 'host names without port, such as ["plant.example"]'
        )
    ] = ()
    cors_origins: Annotated[
        tuple[str, ...], listed(
            'origins whose pages may ask REST from a browser (CORS); "*": all; empty: none but the gateway\'s own page',
            RESTART, 'origins such as ["https://app.example:8443"]'
        )
    ] = ()
    metrics: Annotated[
        Literal["token", "open"], choice('/metrics: "token": for tokens that may read; "open": for everybody', RESTART)
    ] = "token"
    tls_certificate: Annotated[
        str, maybe_text("PEM file of the server certificate and its chain; enables TLS", RESTART)
    ] = ""
    tls_key: Annotated[
        str, maybe_text("PEM file of the private key, readable only by its owner; empty: in tls_certificate", RESTART)
    ] = ""
    connections_max: Annotated[
        int, number(
            "HTTP connections; one more closes one of the network with the most", RESTART, "connections", 1, 1_000_000
        )
    ] = 1_000
    mqtt_connections_max: Annotated[
        int, number(
            "clients of MQTT over WebSocket that have logged in; more are refused",
            RESTART, "connections", 1, 1_000_000
        )
    ] = 250
    watchers_max: Annotated[
        int, number(
            "requests that follow the log, by waiting or as a stream of events; half of them of a network, half of a "
            "token; more are refused", RESTART, "requests", 1, 100_000
        )
    ] = 200
    consumers_max: Annotated[
        int, number(
            "consumers of channels over HTTP; half of them of a network, half of a token; more are refused",
            RESTART, "consumers", 1, 100_000
        )
    ] = 500
    connections_per_second_max: Annotated[
        int, number(
            "new connections; more wait a moment, each address (IPv6: /64) in turn, or are refused; 0: any",
            RESTART, "connections/s", 0, 10**6
        )
    ] = 1000
    idle_seconds_max: Annotated[
        float, number("a connection without a request is closed after so long", RESTART, "seconds", 0.1, 3_600)
    ] = 60.0
    request_seconds_max: Annotated[
        float, number("a request is answered, and its answer read, in so long", RESTART, "seconds", 1, 3_600)
    ] = 30.0
    body_bytes_max: Annotated[int, number("largest body of a request", RESTART, "bytes", KIB, 1024 * MIB)] = 8 * MIB
