"""The table of settings, continued: [auth], and the methods that a listener may choose too."""

from typing import Annotated, Literal

from msgspec import Struct

from rumq.settings.types.setting_types import (
    LIVE,
    MIB,
    NEW_CONNECTIONS,
    choice,
    listed,
    maybe_text,
    number,
    text,
)

# fmt: off
# A table: a formatter would give each argument a line.


METHODS = listed(
    "authentication methods, tried in this order; empty: all that are configured, in the order certificate, "
    "token, password, http",
    NEW_CONNECTIONS,
    '"certificate", "token", "password" and "http"',
)


class Auth(Struct, frozen=True, kw_only=True):
    """Authentication and authorization: docs/guides/security.md. Defaults for listeners without a key of their own."""

    anonymous: Annotated[
        Literal["auto", "yes", "no"], choice(
            'clients without user name are accepted; "auto": only on a loopback address and if no users are configured',
            NEW_CONNECTIONS
        )
    ] = "auto"
    methods: Annotated[tuple[str, ...], METHODS] = ()
    password_file: Annotated[
        str, maybe_text("file of users and password hashes, made by rumqd passwd; empty: none", NEW_CONNECTIONS)
    ] = ""
    rules_file: Annotated[
        str, maybe_text("file of rules of what clients may do; empty: everything; rumqd acl tests it", LIVE)
    ] = ""
    token_keys_file: Annotated[
        str, maybe_text(
            "keys of JSON Web Tokens: a JWK set, PEM public keys, or a secret; clients send the token as password",
            NEW_CONNECTIONS
        )
    ] = ""
    token_issuer: Annotated[str, maybe_text("required iss of tokens; empty: any", NEW_CONNECTIONS)] = ""
    token_audience: Annotated[str, maybe_text("required aud of tokens; empty: any", NEW_CONNECTIONS)] = ""
    token_user_claim: Annotated[str, text("claim with the user name", NEW_CONNECTIONS, 256)] = "sub"
    token_groups_claim: Annotated[str, text("claim with the list of groups", NEW_CONNECTIONS, 256)] = "groups"
    token_client_id_claim: Annotated[
        str, maybe_text("claim that the client id must equal; empty: none", NEW_CONNECTIONS)
    ] = ""
    token_expiry_required: Annotated[
        bool, choice("require exp in tokens; a token without it never expires", NEW_CONNECTIONS)
    ] = False
    http_url: Annotated[
        str, maybe_text(
            "URL of an HTTP server that authenticates clients, called with POST; docs/guides/security.md",
            NEW_CONNECTIONS
        )
    ] = ""
    http_seconds_max: Annotated[
        float, number(
            "time limit for its answer, after which the client is refused", NEW_CONNECTIONS, "seconds", 0.1, 60
        )
    ] = 2.0
    http_remember_seconds_max: Annotated[
        float, number(
            "time that its answer is cached; the answer may shorten it", NEW_CONNECTIONS, "seconds", 0, 86_400
        )
    ] = 60.0
    exact_refusals: Annotated[
        bool, choice(
            "distinguish a wrong password (0x86) from not authorized (0x87); false: always not authorized",
            NEW_CONNECTIONS
        )
    ] = True
    exposed_files: Annotated[
        Literal["refuse", "warn"], choice("files with secrets that other users can read", LIVE)
    ] = "refuse"
    unauthenticated_connections_max: Annotated[
        int, number(
            "connections that have not logged in, per shard; one more replaces the oldest of the "
            "address that has the most; 0: no limit", LIVE, "connections", 0, 10**7
        )
    ] = 10_000
    address_unauthenticated_connections_max: Annotated[
        int, number(
            "connections that have not logged in, from one address (IPv6: one /64)", LIVE, "connections", 0, 10**7
        )
    ] = 1_000
    unauthenticated_bytes_max: Annotated[
        int, number(
            "memory of all connections that have not logged in, per shard; 0: no limit", LIVE, "bytes", 0, 2**60
        )
    ] = 64 * MIB
    user_connections_max: Annotated[
        int, number(
            "connections of a user, per shard; more are refused (0x97); 0: no limit",
            NEW_CONNECTIONS, "connections", 0, 10**7
        )
    ] = 0
    user_sessions_max: Annotated[
        int, number(
            "persistent sessions of a user, per shard; more are refused (0x97); 0: half of mqtt.sessions_max",
            NEW_CONNECTIONS, "sessions", 0, 10**8
        )
    ] = 0
    user_messages_per_second_max: Annotated[
        int, number(
            "publish rate of all connections of a user together, per shard; 0: no limit",
            NEW_CONNECTIONS, "messages/s", 0, 10**9
        )
    ] = 0
    user_bytes_per_second_max: Annotated[int, number("the same in bytes", NEW_CONNECTIONS, "bytes/s", 0, 10**12)] = 0
    user_replay_bytes_per_second_max: Annotated[
        int, number(
            "replay rate of all connections of a user together, per shard; 0: no limit",
            NEW_CONNECTIONS, "bytes/s", 0, 10**12
        )
    ] = 0
    user_topics_max: Annotated[
        int, number(
            "topics that a user may create, per shard and since its start; more are refused (0x97); 0: no limit",
            LIVE, "topics", 0, 10**8
        )
    ] = 0
    remember_seconds_max: Annotated[
        float, number(
            "time that a verified password is cached, so that it is not hashed again; 0: no cache",
            NEW_CONNECTIONS, "seconds", 0, 86_400
        )
    ] = 300.0
    guess_seconds_max: Annotated[
        float, number(
            "delay of repeated refusals of an address, which doubles up to this; 0: none", LIVE, "seconds", 0, 60
        )
    ] = 8.0
