"""The table of settings, continued: [[listener]]."""

from typing import Annotated, Literal

from msgspec import Struct

from rumq.settings.table.auth import METHODS
from rumq.settings.types.setting_types import (
    ANOTHER_LISTENER,
    LIVE,
    NEW_CONNECTIONS,
    RESTART,
    choice,
    listed,
    maybe_text,
    number,
    text,
)

# fmt: off
# A table: a formatter would give each argument a line.


class Listener(Struct, frozen=True, kw_only=True):
    """An address for MQTT clients. For several addresses write [[listener]] once for each, with its own keys;
    missing keys have their defaults. Environment variables and flags apply to the first. A reload (SIGHUP) adds and
    removes listeners; one whose address, protocol or TLS changes is another one.
    """

    host: Annotated[
        str, text(
            'address to listen on; "*": every address; "0.0.0.0": every IPv4 address; "::": every IPv6 address',
            ANOTHER_LISTENER, 255
        )
    ] = "localhost"
    port: Annotated[
        int, number(
            "TCP port; 0: any free port, which the event listener.bound reports", ANOTHER_LISTENER, "", 0, 65_535
        )
    ] = 1883
    path: Annotated[
        str, maybe_text("path of a Unix socket to listen on, instead of host and port", ANOTHER_LISTENER)
    ] = ""
    path_mode: Annotated[Literal["600", "660", "666"], choice("file mode of the Unix socket", RESTART)] = "660"
    protocol: Annotated[Literal["mqtt", "websocket"], choice("transport of MQTT", ANOTHER_LISTENER)] = "mqtt"
    backlog: Annotated[
        int, number("backlog of listen(2): connections that wait to be accepted", RESTART, "connections", 1, 65_535)
    ] = 1024
    connections_max: Annotated[
        int, number(
            "connections that have logged in; more are refused (0x97); each uses one file descriptor",
            RESTART, "connections", 1, 10_000_000
        )
    ] = 100_000
    connections_per_second_max: Annotated[
        int, number(
            "new connections, per shard; more wait a moment, each address (IPv6: /64) in turn, or are refused; 0: any; "
            "not for Unix sockets", LIVE, "connections/s", 0, 10**6
        )
    ] = 5000
    connect_seconds_max: Annotated[
        float, number("time limit for CONNECT on a new connection", NEW_CONNECTIONS, "seconds", 0.1, 3600)
    ] = 10.0
    coalesce_us: Annotated[
        int, number(
            "if many clients send a little, wait this long to serve several together; 0: never; first listener only",
            RESTART, "microseconds", 0, 10_000
        )
    ] = 150
    mount_point: Annotated[
        str, maybe_text(
            'prefix of all topics of this listener\'s clients, such as "site-7/"; clients neither send nor see it',
            RESTART
        )
    ] = ""
    proxies: Annotated[
        tuple[str, ...], listed(
            "networks of proxies, whose connections start with a PROXY protocol header (version 1 or 2); empty: none",
            RESTART, 'networks, such as ["10.0.0.0/8"]'
        )
    ] = ()

    websocket_path: Annotated[str, maybe_text("path of WebSocket requests, such as /mqtt; empty: any", RESTART)] = ""
    websocket_origins: Annotated[
        tuple[str, ...], listed(
            'origins that browsers may connect from, "*" for any; empty: only this host and port',
            RESTART, 'origins, such as ["https://plant.example"]'
        )
    ] = ()

    tls_certificate: Annotated[
        str, maybe_text("PEM file of the server certificate and its chain; enables TLS", NEW_CONNECTIONS)
    ] = ""
    tls_key: Annotated[
        str, maybe_text(
            "PEM file of the private key, readable only by its owner; empty: in tls_certificate", NEW_CONNECTIONS
        )
    ] = ""
    tls_client_certificate: Annotated[
        Literal["no", "optional", "required"], choice("client certificates", NEW_CONNECTIONS)
    ] = "no"
    tls_authority: Annotated[
        str, maybe_text(
            "PEM file of the authorities of client certificates, and of tls_certificate's chain if its file has none",
            NEW_CONNECTIONS
        )
    ] = ""
    tls_authority_dir: Annotated[
        str, maybe_text("the same as a directory of files with hashed names (openssl rehash)", NEW_CONNECTIONS)
    ] = ""
    tls_revoked: Annotated[
        str, maybe_text("PEM file of a certificate revocation list; clients on it are refused", NEW_CONNECTIONS)
    ] = ""
    tls_version_min: Annotated[
        Literal["1.2", "1.3"], choice("oldest TLS version that is accepted", NEW_CONNECTIONS)
    ] = "1.2"
    tls_ciphers: Annotated[
        str, maybe_text("TLS 1.2 ciphers, in OpenSSL's notation; empty: OpenSSL's default", NEW_CONNECTIONS)
    ] = ""
    tls_ciphersuites: Annotated[
        str, maybe_text("TLS 1.3 cipher suites; empty: OpenSSL's default", NEW_CONNECTIONS)
    ] = ""
    tls_handshakes_max: Annotated[
        int, number(
            "concurrent TLS handshakes; others wait, scheduled fairly between addresses",
            RESTART, "handshakes", 1, 100_000
        )
    ] = 256

    anonymous: Annotated[
        Literal["auth", "auto", "yes", "no"], choice(
            'clients without user name are accepted; "auth": as auth.anonymous says', NEW_CONNECTIONS
        )
    ] = "auth"
    methods: Annotated[tuple[str, ...], METHODS] = ()
    password_file: Annotated[
        str, maybe_text("password file of this listener; empty: auth.password_file", NEW_CONNECTIONS)
    ] = ""
    rules_file: Annotated[
        str, maybe_text(
            "rules of what this listener's clients may do; empty: auth.rules_file; docs/guides/security.md",
            LIVE
        )
    ] = ""
    certificate_as_user: Annotated[
        Literal["no", "common name", "subject"], choice(
            "part of the client certificate that is the user name", NEW_CONNECTIONS
        )
    ] = "common name"
    user_as_client_id: Annotated[
        bool, choice("use the user name as client id, whatever CONNECT says", NEW_CONNECTIONS)
    ] = False
    client_id_prefixes: Annotated[
        tuple[str, ...], listed(
            "allowed prefixes of client ids; empty: any", NEW_CONNECTIONS, 'text, such as ["pump-"]'
        )
    ] = ()
    assigned_prefix: Annotated[str, text("prefix of client ids that the broker assigns", NEW_CONNECTIONS, 64)] = "rumq-"
    mqtt_versions: Annotated[
        tuple[str, ...], listed(
            "versions of MQTT that are accepted; empty: all", NEW_CONNECTIONS, 'some of "3.1", "3.1.1", "5"'
        )
    ] = ()
    empty_client_id: Annotated[
        bool, choice("accept an empty client id, for which the broker assigns one", NEW_CONNECTIONS)
    ] = True

    maximum_qos: Annotated[
        int, number("highest QoS of messages published through this listener", NEW_CONNECTIONS, "", 0, 2)
    ] = 2
    client_messages_per_second_max: Annotated[
        int, number(
            "publish rate of each client, above which it is read later; 0: no limit",
            NEW_CONNECTIONS, "messages/s", 0, 10**9
        )
    ] = 0
    client_bytes_per_second_max: Annotated[int, number("the same in bytes", NEW_CONNECTIONS, "bytes/s", 0, 10**12)] = 0
    messages_per_second_max: Annotated[
        int, number(
            "publish rate of all clients of this listener together, per shard; 0: no limit",
            NEW_CONNECTIONS, "messages/s", 0, 10**9
        )
    ] = 0
    bytes_per_second_max: Annotated[int, number("the same in bytes", NEW_CONNECTIONS, "bytes/s", 0, 10**12)] = 0
    client_replay_bytes_per_second_max: Annotated[
        int, number("replay rate ($log/...) of each client; 0: no limit", NEW_CONNECTIONS, "bytes/s", 0, 10**12)
    ] = 0
    replay_bytes_per_second_max: Annotated[
        int, number(
            "replay rate of all clients of this listener together, per shard; 0: no limit",
            NEW_CONNECTIONS, "bytes/s", 0, 10**12
        )
    ] = 0
    receive_maximum: Annotated[
        int, number("as mqtt.receive_maximum, which is the upper bound", NEW_CONNECTIONS, "messages", 1, 65_535)
    ] = 65_535
    inflight_max: Annotated[
        int, number("as mqtt.inflight_max, which is the upper bound", NEW_CONNECTIONS, "messages", 1, 65_535)
    ] = 65_535
    subscriptions_max: Annotated[
        int, number(
            "as mqtt.subscriptions_max, which is the upper bound", NEW_CONNECTIONS, "subscriptions", 1, 10_000_000
        )
    ] = 10_000_000
    topic_alias_maximum: Annotated[
        int, number("as mqtt.topic_alias_maximum, which is the upper bound", NEW_CONNECTIONS, "aliases", 0, 65_535)
    ] = 65_535
