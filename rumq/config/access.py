"""The table of settings, the part of who may come in and where: [listener] and [auth]."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Struct

from rumq.config.setting_types import MIB, choice, listed, maybe_text, number, text

METHODS = listed(
    "how clients show who they are, tried in this order; empty: all that are set up, in this order: certificate, "
    "token, password, http",
    '"certificate", "token", "password" and "http"',
)
Proof: TypeAlias = Literal["no", "optional", "required"]


class Listener(Struct, frozen=True, kw_only=True):
    """Where MQTT clients come in. For several addresses write [[listener]] once for each, with its own keys:
    what it leaves out has the default. Environment and command line speak of the first.
    """

    host: Annotated[
        str,
        text(
            'address to listen on; "*" is every address of this machine, "0.0.0.0" and "::" those of one kind',
            255,
        ),
    ] = "localhost"
    port: Annotated[int, number("TCP port; 0 takes any free one, named in listener.bound", "", 0, 65_535)] = (
        1883
    )
    path: Annotated[str, maybe_text("listen on this Unix socket instead of an address and a port")] = ""
    path_mode: Annotated[
        Literal["600", "660", "666"], choice("who may use the Unix socket: owner, group too, everybody")
    ] = "660"
    protocol: Annotated[Literal["mqtt", "websocket"], choice("what is spoken here")] = "mqtt"
    backlog: Annotated[
        int, number("connections the kernel may hold before they are accepted", "connections", 1, 65_535)
    ] = 1024
    connections_max: Annotated[
        int,
        number(
            "that have logged in; more are refused (0x97); each costs one file descriptor",
            "connections",
            1,
            10_000_000,
        ),
    ] = 100_000
    connect_seconds_max: Annotated[
        float, number("time for a new connection to send its CONNECT", "seconds", 0.1, 3600)
    ] = 10.0
    coalesce_us: Annotated[
        int,
        number(
            "when many clients send a little each, wait this long to serve several at once; 0 never; of the first",
            "microseconds",
            0,
            10_000,
        ),
    ] = 150
    mount_point: Annotated[
        str,
        maybe_text(
            'begins all topics of clients of this listener, such as "site-7/": they see only those, and without it'
        ),
    ] = ""
    proxies: Annotated[
        tuple[str, ...],
        listed(
            "networks whose connections begin with a PROXY header, version 1 or 2; empty: none does",
            'networks, such as ["10.0.0.0/8"]',
        ),
    ] = ()

    websocket_path: Annotated[str, maybe_text("where MQTT is, such as /mqtt; empty: anywhere")] = ""
    websocket_origins: Annotated[
        tuple[str, ...],
        listed(
            'pages that browsers may connect from, "*" for any; empty: only those of this very host and port',
            'origins, such as ["https://plant.example"]',
        ),
    ] = ()

    tls_certificate: Annotated[str, maybe_text("PEM, with the chain; with it, TLS is spoken here")] = ""
    tls_key: Annotated[str, maybe_text("PEM, readable by its owner alone")] = ""
    tls_client_certificate: Annotated[Proof, choice("whether clients must show one")] = "no"
    tls_authority: Annotated[
        str,
        maybe_text("PEM of those who sign clients' certificates, or this one where its file has no chain"),
    ] = ""
    tls_authority_dir: Annotated[str, maybe_text("the same as a directory of hashed names")] = ""
    tls_revoked: Annotated[str, maybe_text("PEM of a revocation list; clients on it are refused")] = ""
    tls_version_min: Annotated[Literal["1.2", "1.3"], choice("older ones are refused")] = "1.2"
    tls_ciphers: Annotated[str, maybe_text("of TLS 1.2, as OpenSSL writes them; empty: its own choice")] = ""
    tls_ciphersuites: Annotated[str, maybe_text("of TLS 1.3")] = ""
    tls_handshakes_max: Annotated[
        int,
        number(
            "TLS handshakes under way at once; others wait, each address in turn", "handshakes", 1, 100_000
        ),
    ] = 256

    anonymous: Annotated[Literal["auth", "auto", "yes", "no"], choice('"auth": as auth.anonymous')] = "auth"
    methods: Annotated[tuple[str, ...], METHODS] = ()
    password_file: Annotated[str, maybe_text("users of this listener alone; empty: auth.password_file")] = ""
    rules_file: Annotated[
        str, maybe_text("what clients of this listener may do; empty: auth.rules_file; docs/security.md")
    ] = ""
    certificate_as_user: Annotated[
        Literal["no", "common name", "subject"], choice("what of a client's certificate is its user name")
    ] = "common name"
    user_as_client_id: Annotated[bool, choice("the client id is the user name, whatever CONNECT says")] = (
        False
    )
    client_id_prefixes: Annotated[
        tuple[str, ...], listed("one of them must begin a client id; empty: any", 'text, such as ["pump-"]')
    ] = ()
    assigned_prefix: Annotated[str, text("begins the client ids that the broker gives", 64)] = "rumq-"
    empty_client_id: Annotated[bool, choice("whether a client may leave its client id to the broker")] = True

    maximum_qos: Annotated[int, number("highest QoS to publish with here", "", 0, 2)] = 2
    client_messages_per_second_max: Annotated[
        int, number("of each client; who sends more is read later; 0: any", "messages/s", 0, 10**9)
    ] = 0
    client_bytes_per_second_max: Annotated[int, number("likewise", "bytes/s", 0, 10**12)] = 0
    messages_per_second_max: Annotated[
        int, number("of all clients of this listener together, in each shard; 0: any", "messages/s", 0, 10**9)
    ] = 0
    bytes_per_second_max: Annotated[int, number("likewise", "bytes/s", 0, 10**12)] = 0
    client_replay_bytes_per_second_max: Annotated[
        int, number("what each client is sent of the past ($log/...); 0: any", "bytes/s", 0, 10**12)
    ] = 0
    replay_bytes_per_second_max: Annotated[
        int, number("likewise, all clients of this listener together, in each shard", "bytes/s", 0, 10**12)
    ] = 0
    receive_maximum: Annotated[
        int, number("as mqtt.receive_maximum, at most that", "messages", 1, 65_535)
    ] = 65_535
    inflight_max: Annotated[int, number("as mqtt.inflight_max, at most that", "messages", 1, 65_535)] = 65_535
    subscriptions_max: Annotated[
        int, number("as mqtt.subscriptions_max, at most that", "subscriptions", 1, 10_000_000)
    ] = 10_000_000
    topic_alias_maximum: Annotated[
        int,
        number(
            "topic aliases a client may define here; at most mqtt.topic_alias_maximum", "aliases", 0, 65_535
        ),
    ] = 65_535


class Flight(Struct, frozen=True, kw_only=True):
    """The log over the network for Spark and other Arrow clients, read-only, by a process of its own: docs/spark.md.
    Who may read what is decided by [auth], as for MQTT. Needs the extra "flight".
    """

    host: Annotated[str, text('address to listen on; "*" is every address of this machine', 255)] = (
        "localhost"
    )
    port: Annotated[
        int,
        number("TCP port, mostly 8815; 0: none; -1: any free one, named in listener.bound", "", -1, 65_535),
    ] = 0
    tls_certificate: Annotated[str, maybe_text("PEM, with the chain; with it, TLS is spoken here")] = ""
    tls_key: Annotated[str, maybe_text("PEM, readable by its owner alone")] = ""
    tls_authority: Annotated[
        str, maybe_text("PEM of those who sign clients' certificates; with it, clients must show one")
    ] = ""
    anonymous: Annotated[Literal["auth", "auto", "yes", "no"], choice('"auth": as auth.anonymous')] = "auth"
    password_file: Annotated[str, maybe_text("users of Flight alone; empty: auth.password_file")] = ""
    rules_file: Annotated[
        str, maybe_text('who may "replay" what; empty: auth.rules_file; docs/security.md')
    ] = ""


class Auth(Struct, frozen=True, kw_only=True):
    """Who may come in: docs/security.md. Every listener that has no key of its own takes these."""

    anonymous: Annotated[
        Literal["auto", "yes", "no"],
        choice(
            'whether clients without a name come in; "auto": on a loopback address, where no users are set up'
        ),
    ] = "auto"
    methods: Annotated[tuple[str, ...], METHODS] = ()
    password_file: Annotated[str, maybe_text("users and hashes, made by rumqd passwd; empty: none")] = ""
    rules_file: Annotated[str, maybe_text("what clients may do; empty: everything; rumqd acl tests it")] = ""
    token_keys_file: Annotated[
        str,
        maybe_text(
            "keys of JSON Web Tokens: a JWK set, public keys as PEM, or a secret; clients send it as password"
        ),
    ] = ""
    token_issuer: Annotated[str, maybe_text("what a token's iss must be; empty: anything")] = ""
    token_audience: Annotated[str, maybe_text("what must be in a token's aud; empty: anything")] = ""
    token_user_claim: Annotated[str, text("the claim that is the user name", 256)] = "sub"
    token_groups_claim: Annotated[str, text("the claim that lists groups", 256)] = "groups"
    token_client_id_claim: Annotated[
        str, maybe_text("the claim that the client id must equal; empty: none")
    ] = ""
    token_expiry_required: Annotated[
        bool, choice("whether a token must say when it expires; without exp it lets in for ever")
    ] = False
    http_url: Annotated[
        str, maybe_text("a server that says who may come in, asked by POST; docs/security.md")
    ] = ""
    http_seconds_max: Annotated[
        float, number("without an answer in this time nobody comes in", "seconds", 0.1, 60)
    ] = 2.0
    http_remember_seconds_max: Annotated[
        float, number("its answer holds for so long, or less if it says so", "seconds", 0, 86_400)
    ] = 60.0
    exact_refusals: Annotated[
        bool, choice("tell a wrong password from what is not allowed; false: all is called not authorized")
    ] = True
    exposed_files: Annotated[
        Literal["refuse", "warn"], choice("what to do about files of secrets that others can read")
    ] = "refuse"
    unauthenticated_connections_max: Annotated[
        int,
        number(
            "that wait for their client and have not logged in, in each shard; for a new one, the oldest of the "
            "address with the most goes; 0: any",
            "connections",
            0,
            10**7,
        ),
    ] = 10_000
    address_unauthenticated_connections_max: Annotated[
        int, number("likewise, from one address, of IPv6 from one /64", "connections", 0, 10**7)
    ] = 1_000
    unauthenticated_bytes_max: Annotated[
        int,
        number(
            "of all those together, kept until they have logged in, in each shard; 0: any", "bytes", 0, 2**60
        ),
    ] = 64 * MIB
    user_connections_max: Annotated[
        int, number("of one user, in each shard; more are refused (0x97); 0: any", "connections", 0, 10**7)
    ] = 0
    user_sessions_max: Annotated[
        int,
        number(
            "that outlive their connections, of one user, in each shard; more are refused (0x97); 0: half of "
            "mqtt.sessions_max",
            "sessions",
            0,
            10**8,
        ),
    ] = 0
    user_messages_per_second_max: Annotated[
        int, number("of all connections of a user together, in each shard; 0: any", "messages/s", 0, 10**9)
    ] = 0
    user_bytes_per_second_max: Annotated[int, number("likewise", "bytes/s", 0, 10**12)] = 0
    user_replay_bytes_per_second_max: Annotated[
        int, number("what all its connections together are sent of the past", "bytes/s", 0, 10**12)
    ] = 0
    user_topics_max: Annotated[
        int,
        number(
            "topics that a user's messages bring into being, in each shard since it started; more are refused (0x97)",
            "topics",
            0,
            10**8,
        ),
    ] = 0
    remember_seconds_max: Annotated[
        float,
        number("a password that was right is not hashed again for so long; 0 always", "seconds", 0, 86_400),
    ] = 300.0
    guess_seconds_max: Annotated[
        float, number("a refusal is held back longer each time, up to this; 0 never", "seconds", 0, 60)
    ] = 8.0
