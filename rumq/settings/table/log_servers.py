"""The table of settings, continued: [flight], [kafka] and [[kafka.view]], the servers that read the log."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from rumq.settings.types.setting_types import (
    DAY_SECONDS,
    FLIGHT_PORT,
    KAFKA_PORT,
    KIB,
    LIVE,
    MIB,
    RESTART,
    choice,
    extra,
    maybe_text,
    number,
    text,
)

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


class Kafka(Struct, frozen=True, kw_only=True):
    """Kafka's protocol for consumers: streams and views as topics, consumer groups: docs/guides/kafka.md.
    Users and rules are those of [auth]. Requires the extra "kafka".
    """

    host: Annotated[str, text('address to listen on; "*": every address', RESTART, 255)] = "localhost"
    port: Annotated[
        int, number(
            f"TCP port, usually {KAFKA_PORT}; 0: no Kafka server; -1: any free port, which listener.bound reports",
            RESTART, "", -1, 65_535, usual=KAFKA_PORT
        )
    ] = 0
    advertised: Annotated[
        str, maybe_text(
            'host:port that clients are told to connect to, in a cluster by all nodes; empty: the address that they '
            'came in at', RESTART
        )
    ] = ""
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
            "the user of a client certificate, for clients that do not log in by SASL", RESTART
        )
    ] = "common name"
    anonymous: Annotated[
        Literal["auth", "auto", "yes", "no"], choice(
            'clients without a login are accepted; "auth": as auth.anonymous says', LIVE
        )
    ] = "auth"
    password_file: Annotated[str, maybe_text("password file of Kafka; empty: auth.password_file", LIVE)] = ""
    rules_file: Annotated[
        str, maybe_text(
            'rules, of which the action "replay" applies; empty: auth.rules_file; docs/guides/security.md', LIVE
        )
    ] = ""
    cleared_as_null: Annotated[
        bool, choice("the value of a retained message that was cleared is null, as a tombstone, not empty", RESTART)
    ] = False
    connections_max: Annotated[
        int, number(
            "connections at once; half of them of a network; more are closed", RESTART, "connections", 2, 100_000
        )
    ] = 2_000
    request_bytes_max: Annotated[
        int, number("largest request; a larger one ends its connection", RESTART, "bytes", 64 * KIB, 64 * MIB)
    ] = MIB
    fetch_bytes_max: Annotated[
        int, number(
            "records of one answer, but for a single larger one, whatever a client asks for", RESTART, "bytes",
            64 * KIB, 256 * MIB
        )
    ] = 8 * MIB
    waiting_bytes_max: Annotated[
        int, number(
            "answers that clients are still to take; half of them of a network, half of a user; beyond it answers "
            "have 64 KiB", RESTART, "bytes", MIB, 65_536 * MIB
        )
    ] = 128 * MIB
    groups_max: Annotated[
        int, number(
            "consumer groups with members; half of them of a network, half of a user", RESTART, "groups", 2, 100_000
        )
    ] = 1_000
    group_bytes_max: Annotated[
        int, number(
            "what members of groups say and are assigned, in memory, and as much of committed offsets; half of it of a "
            "user", RESTART, "bytes", MIB, 4096 * MIB
        )
    ] = 64 * MIB
    offset_retention_seconds: Annotated[
        float, number(
            "committed offsets of a group without members are kept so long", RESTART, "seconds", 60, 3650 * DAY_SECONDS
        )
    ] = 7.0 * DAY_SECONDS
    idle_seconds_max: Annotated[
        float, number("a client that asks for nothing is disconnected after", RESTART, "seconds", 1, DAY_SECONDS)
    ] = 600.0


class KafkaView(Struct, frozen=True, kw_only=True):
    """A Kafka topic that has the records of one MQTT filter: docs/guides/kafka.md."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,127}\Z",
            description="name of the Kafka topic, not that of a stream",
            extra=extra("text of letters, digits, ., _ and -, at most 128, beginning with a letter or digit", RESTART),
        ),
    ] = "plant"
    filter: Annotated[str, text("MQTT topic filter of the records that it has", RESTART, 1024)] = "plant/#"
    stream: Annotated[str, text("stream that it is a part of", RESTART, 64)] = "main"
