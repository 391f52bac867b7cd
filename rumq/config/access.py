"""The table of settings, continued: [listener], [flight] and [auth]."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Struct

from rumq.config.setting_types import MIB, choice, listed, maybe_text, number, text

# fmt: off
# A table: a formatter would give each argument a line.
METHODS = listed(
    "authentication methods, tried in this order; empty: all that are configured, in the order certificate, "
    "token, password, http",
    '"certificate", "token", "password" and "http"',
)
Proof: TypeAlias = Literal["no", "optional", "required"]


class Listener(Struct, frozen=True, kw_only=True):
    """An address for MQTT clients. For several addresses write [[listener]] once for each, with its own keys;
    missing keys have their defaults. Environment variables and flags apply to the first. A reload (SIGHUP) adds and
    removes listeners; one whose address, protocol or TLS changes is another one.
    """

    host: Annotated[
        str,
        text('address to listen on; "*": every address; "0.0.0.0": every IPv4 address; "::": every IPv6 address', 255),
    ] = "localhost"
    port: Annotated[
        int, number("TCP port; 0: any free port, which the event listener.bound reports", "", 0, 65_535)
    ] = 1883
    path: Annotated[str, maybe_text("path of a Unix socket to listen on, instead of host and port")] = ""
    path_mode: Annotated[Literal["600", "660", "666"], choice("file mode of the Unix socket")] = "660"
    protocol: Annotated[Literal["mqtt", "websocket"], choice("transport of MQTT")] = "mqtt"
    backlog: Annotated[
        int, number("backlog of listen(2): connections that wait to be accepted", "connections", 1, 65_535)
    ] = 1024
    connections_max: Annotated[
        int,
        number(
            "connections that have logged in; more are refused (0x97); each uses one file descriptor",
            "connections", 1, 10_000_000
        ),
    ] = 100_000
    connections_per_second_max: Annotated[
        int,
        number(
            "new connections, per shard; more wait a moment, each address (IPv6: /64) in turn, or are refused; 0: any; "
            "not for Unix sockets",
            "connections/s", 0, 10**6
        ),
    ] = 5000
    connect_seconds_max: Annotated[
        float, number("time limit for CONNECT on a new connection", "seconds", 0.1, 3600)
    ] = 10.0
    coalesce_us: Annotated[
        int,
        number(
            "if many clients send a little, wait this long to serve several together; 0: never; first listener only",
            "microseconds", 0, 10_000
        ),
    ] = 150
    mount_point: Annotated[
        str,
        maybe_text(
            'prefix of all topics of this listener\'s clients, such as "site-7/"; clients neither send nor see it'
        ),
    ] = ""
    proxies: Annotated[
        tuple[str, ...],
        listed(
            "networks of proxies, whose connections start with a PROXY protocol header (version 1 or 2); empty: none",
            'networks, such as ["10.0.0.0/8"]'
        ),
    ] = ()

    websocket_path: Annotated[str, maybe_text("path of WebSocket requests, such as /mqtt; empty: any")] = ""
    websocket_origins: Annotated[
        tuple[str, ...],
        listed(
            'origins that browsers may connect from, "*" for any; empty: only this host and port',
            'origins, such as ["https://plant.example"]'
        ),
    ] = ()

    tls_certificate: Annotated[str, maybe_text("PEM file of the server certificate and its chain; enables TLS")] = ""
    tls_key: Annotated[
        str, maybe_text("PEM file of the private key, readable only by its owner; empty: in tls_certificate")
    ] = ""
    tls_client_certificate: Annotated[Proof, choice("client certificates")] = "no"
    tls_authority: Annotated[
        str,
        maybe_text(
            "PEM file of the authorities of client certificates, and of tls_certificate's chain if its file has none"
        ),
    ] = ""
    tls_authority_dir: Annotated[
        str, maybe_text("the same as a directory of files with hashed names (openssl rehash)")
    ] = ""
    tls_revoked: Annotated[
        str, maybe_text("PEM file of a certificate revocation list; clients on it are refused")
    ] = ""
    tls_version_min: Annotated[Literal["1.2", "1.3"], choice("oldest TLS version that is accepted")] = "1.2"
    tls_ciphers: Annotated[str, maybe_text("TLS 1.2 ciphers, in OpenSSL's notation; empty: OpenSSL's default")] = ""
    tls_ciphersuites: Annotated[str, maybe_text("TLS 1.3 cipher suites; empty: OpenSSL's default")] = ""
    tls_handshakes_max: Annotated[
        int,
        number("concurrent TLS handshakes; others wait, scheduled fairly between addresses", "handshakes", 1, 100_000),
    ] = 256

    anonymous: Annotated[
        Literal["auth", "auto", "yes", "no"],
        choice('clients without user name are accepted; "auth": as auth.anonymous says'),
    ] = "auth"
    methods: Annotated[tuple[str, ...], METHODS] = ()
    password_file: Annotated[str, maybe_text("password file of this listener; empty: auth.password_file")] = ""
    rules_file: Annotated[
        str, maybe_text("rules of what this listener's clients may do; empty: auth.rules_file; docs/security.md")
    ] = ""
    certificate_as_user: Annotated[
        Literal["no", "common name", "subject"], choice("part of the client certificate that is the user name")
    ] = "common name"
    user_as_client_id: Annotated[bool, choice("use the user name as client id, whatever CONNECT says")] = False
    client_id_prefixes: Annotated[
        tuple[str, ...], listed("allowed prefixes of client ids; empty: any", 'text, such as ["pump-"]')
    ] = ()
    assigned_prefix: Annotated[str, text("prefix of client ids that the broker assigns", 64)] = "rumq-"
    empty_client_id: Annotated[bool, choice("accept an empty client id, for which the broker assigns one")] = True

    maximum_qos: Annotated[int, number("highest QoS of messages published through this listener", "", 0, 2)] = 2
    client_messages_per_second_max: Annotated[
        int, number("publish rate of each client, above which it is read later; 0: no limit", "messages/s", 0, 10**9)
    ] = 0
    client_bytes_per_second_max: Annotated[int, number("the same in bytes", "bytes/s", 0, 10**12)] = 0
    messages_per_second_max: Annotated[
        int,
        number("publish rate of all clients of this listener together, per shard; 0: no limit", "messages/s", 0, 10**9),
    ] = 0
    bytes_per_second_max: Annotated[int, number("the same in bytes", "bytes/s", 0, 10**12)] = 0
    client_replay_bytes_per_second_max: Annotated[
        int, number("replay rate ($log/...) of each client; 0: no limit", "bytes/s", 0, 10**12)
    ] = 0
    replay_bytes_per_second_max: Annotated[
        int,
        number("replay rate of all clients of this listener together, per shard; 0: no limit", "bytes/s", 0, 10**12),
    ] = 0
    receive_maximum: Annotated[
        int, number("as mqtt.receive_maximum, which is the upper bound", "messages", 1, 65_535)
    ] = 65_535
    inflight_max: Annotated[
        int, number("as mqtt.inflight_max, which is the upper bound", "messages", 1, 65_535)
    ] = 65_535
    subscriptions_max: Annotated[
        int, number("as mqtt.subscriptions_max, which is the upper bound", "subscriptions", 1, 10_000_000)
    ] = 10_000_000
    topic_alias_maximum: Annotated[
        int, number("as mqtt.topic_alias_maximum, which is the upper bound", "aliases", 0, 65_535)
    ] = 65_535


class Flight(Struct, frozen=True, kw_only=True):
    """Arrow Flight server: the log for Spark and other Arrow clients, from a read-only process: docs/spark.md.
    Users and rules are those of [auth]. Requires the extra "flight".
    """

    host: Annotated[str, text('address to listen on; "*": every address', 255)] = "localhost"
    port: Annotated[
        int,
        number(
            "TCP port, usually 8815; 0: no Flight server; -1: any free port, which listener.bound reports",
            "", -1, 65_535
        ),
    ] = 0
    tls_certificate: Annotated[str, maybe_text("PEM file of the server certificate and its chain; enables TLS")] = ""
    tls_key: Annotated[
        str, maybe_text("PEM file of the private key, readable only by its owner; empty: in tls_certificate")
    ] = ""
    tls_authority: Annotated[
        str, maybe_text("PEM file of the authorities that sign client certificates; makes them mandatory")
    ] = ""
    anonymous: Annotated[
        Literal["auth", "auto", "yes", "no"],
        choice('clients without user name are accepted; "auth": as auth.anonymous says'),
    ] = "auth"
    password_file: Annotated[str, maybe_text("password file of Flight; empty: auth.password_file")] = ""
    rules_file: Annotated[
        str, maybe_text('rules, of which the action "replay" applies; empty: auth.rules_file; docs/security.md')
    ] = ""


class Auth(Struct, frozen=True, kw_only=True):
    """Authentication and authorization: docs/security.md. Defaults for every listener without a key of its own."""

    anonymous: Annotated[
        Literal["auto", "yes", "no"],
        choice(
            'clients without user name are accepted; "auto": only on a loopback address and if no users are configured'
        ),
    ] = "auto"
    methods: Annotated[tuple[str, ...], METHODS] = ()
    password_file: Annotated[
        str, maybe_text("file of users and password hashes, made by rumqd passwd; empty: none")
    ] = ""
    rules_file: Annotated[
        str, maybe_text("file of rules of what clients may do; empty: everything; rumqd acl tests it")
    ] = ""
    token_keys_file: Annotated[
        str,
        maybe_text(
            "keys of JSON Web Tokens: a JWK set, PEM public keys, or a secret; clients send the token as password"
        ),
    ] = ""
    token_issuer: Annotated[str, maybe_text("required iss of tokens; empty: any")] = ""
    token_audience: Annotated[str, maybe_text("required aud of tokens; empty: any")] = ""
    token_user_claim: Annotated[str, text("claim with the user name", 256)] = "sub"
    token_groups_claim: Annotated[str, text("claim with the list of groups", 256)] = "groups"
    token_client_id_claim: Annotated[str, maybe_text("claim that the client id must equal; empty: none")] = ""
    token_expiry_required: Annotated[bool, choice("require exp in tokens; a token without it never expires")] = False
    http_url: Annotated[
        str, maybe_text("URL of an HTTP server that authenticates clients, called with POST; docs/security.md")
    ] = ""
    http_seconds_max: Annotated[
        float, number("time limit for its answer, after which the client is refused", "seconds", 0.1, 60)
    ] = 2.0
    http_remember_seconds_max: Annotated[
        float, number("time that its answer is cached; the answer may shorten it", "seconds", 0, 86_400)
    ] = 60.0
    exact_refusals: Annotated[
        bool, choice("distinguish a wrong password (0x86) from not authorized (0x87); false: always not authorized")
    ] = True
    exposed_files: Annotated[
        Literal["refuse", "warn"], choice("files with secrets that other users can read")
    ] = "refuse"
    unauthenticated_connections_max: Annotated[
        int,
        number(
            "connections that have not logged in, per shard; one more replaces the oldest of the "
            "address that has the most; 0: no limit",
            "connections", 0, 10**7
        ),
    ] = 10_000
    address_unauthenticated_connections_max: Annotated[
        int, number("connections that have not logged in, from one address (IPv6: one /64)", "connections", 0, 10**7)
    ] = 1_000
    unauthenticated_bytes_max: Annotated[
        int, number("memory of all connections that have not logged in, per shard; 0: no limit", "bytes", 0, 2**60)
    ] = 64 * MIB
    user_connections_max: Annotated[
        int,
        number("connections of a user, per shard; more are refused (0x97); 0: no limit", "connections", 0, 10**7),
    ] = 0
    user_sessions_max: Annotated[
        int,
        number(
            "persistent sessions of a user, per shard; more are refused (0x97); 0: half of mqtt.sessions_max",
            "sessions", 0, 10**8
        ),
    ] = 0
    user_messages_per_second_max: Annotated[
        int,
        number("publish rate of all connections of a user together, per shard; 0: no limit", "messages/s", 0, 10**9),
    ] = 0
    user_bytes_per_second_max: Annotated[int, number("the same in bytes", "bytes/s", 0, 10**12)] = 0
    user_replay_bytes_per_second_max: Annotated[
        int,
        number("replay rate of all connections of a user together, per shard; 0: no limit", "bytes/s", 0, 10**12),
    ] = 0
    user_topics_max: Annotated[
        int,
        number(
            "topics that a user may create, per shard and since its start; more are refused (0x97); 0: no limit",
            "topics", 0, 10**8
        ),
    ] = 0
    remember_seconds_max: Annotated[
        float,
        number(
            "time that a verified password is cached, so that it is not hashed again; 0: no cache",
            "seconds", 0, 86_400
        ),
    ] = 300.0
    guess_seconds_max: Annotated[
        float,
        number("delay of repeated refusals of an address, which doubles up to this; 0: none", "seconds", 0, 60),
    ] = 8.0
