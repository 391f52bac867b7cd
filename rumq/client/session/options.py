"""Options of `connect`, and the CONNECT packet built from them. MQTT 5.0, 3.1."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rumq.client.login.enhanced_login import EnhancedLogin
from rumq.client.session.back_off import Reconnect
from rumq.client.session.redirects import HOPS_MAX
from rumq.mqtt.packets import Connect, Will
from rumq.mqtt.properties import Properties
from rumq.mqtt.reasons import Reason

# Reason codes after which a retry may succeed. MQTT 5.0, 4.13; MQTT 3.1.1, 3.2.2.3.
TEMPORARY = frozenset(
    {
        Reason.UNSPECIFIED_ERROR,
        Reason.SERVER_UNAVAILABLE,
        Reason.SERVER_BUSY,
        Reason.SERVER_SHUTTING_DOWN,
        Reason.KEEP_ALIVE_TIMEOUT,
        Reason.MESSAGE_RATE_TOO_HIGH,
        Reason.QUOTA_EXCEEDED,
        Reason.ADMINISTRATIVE_ACTION,
        Reason.CONNECTION_RATE_EXCEEDED,
        Reason.MAXIMUM_CONNECT_TIME,
        Reason.USE_ANOTHER_SERVER,
    }
)

Secret = str | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """The options of `connect`, where they are described."""

    client_id: str = ""
    version: int = 5
    clean_start: bool = True
    session_expiry: int = 0
    will: Will | None = None
    keep_alive: int = 60
    username: str | None = None
    password: Secret | Callable[[], Secret] | None = None
    login: EnhancedLogin | None = None
    receive_maximum: int = 1000
    topic_alias_maximum: int = 16
    topic_aliases: int = 0
    reconnect: bool | Reconnect = False
    redirects_max: int = HOPS_MAX
    begin_offline: bool = False
    connect_seconds_max: float = 10.0
    manual_acknowledge: bool = False
    trace: Callable[[], Mapping[str, str]] | None = None
    properties: Properties | None = None


def reconnect_policy(options: ConnectOptions) -> Reconnect | None:
    """How to reconnect; None: not at all."""
    if isinstance(options.reconnect, Reconnect):
        return options.reconnect
    return Reconnect() if options.reconnect else None


def connect_packet(options: ConnectOptions, client_id: str, *, clean_start: bool) -> Connect:
    """The CONNECT of one connection; later connections send the client id that the broker assigned."""
    properties = Properties()
    if options.version == 5:
        properties = Properties(
            receive_maximum=options.receive_maximum,
            topic_alias_maximum=options.topic_alias_maximum,
            request_problem_information=True,
        )
        if options.session_expiry:
            properties["session_expiry_interval"] = options.session_expiry
        if options.login is not None:
            properties["authentication_method"] = options.login.method
            if (data := options.login.first()) is not None:
                properties["authentication_data"] = data
        properties.update(options.properties or {})
    secret = options.password() if callable(options.password) else options.password
    password = secret.encode() if isinstance(secret, str) else secret
    # Before MQTT 5 a session persists if and only if it was started with clean session 0.
    clean = clean_start if options.version == 5 else options.clean_start
    return Connect(
        client_id, options.version, clean, options.keep_alive, options.username, password, options.will, properties
    )
