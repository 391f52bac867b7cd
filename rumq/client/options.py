"""Options of `connect`, and the CONNECT packet built from them. MQTT 5.0, 3.1."""

from dataclasses import dataclass

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
    }
)


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
    password: str | bytes | None = None
    receive_maximum: int = 1000
    topic_alias_maximum: int = 16
    reconnect: bool = False
    connect_seconds_max: float = 10.0

    def connect_packet(self, client_id: str, *, clean_start: bool) -> Connect:
        """The CONNECT of one connection; later connections send the client id that the broker assigned."""
        properties = Properties()
        if self.version == 5:
            properties = Properties(
                receive_maximum=self.receive_maximum,
                topic_alias_maximum=self.topic_alias_maximum,
                request_problem_information=True,
            )
            if self.session_expiry:
                properties["session_expiry_interval"] = self.session_expiry
        password = self.password.encode() if isinstance(self.password, str) else self.password
        # Before MQTT 5 a session persists if and only if it was started with clean session 0.
        clean = clean_start if self.version == 5 else self.clean_start
        return Connect(client_id, self.version, clean, self.keep_alive, self.username, password, self.will, properties)
