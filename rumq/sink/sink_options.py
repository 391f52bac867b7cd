"""The options of format "rumq" for writing, checked: an unknown option is an error. docs/guides/spark.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from rumq.mqtt.errors import TopicNameInvalid
from rumq.mqtt.topics import check_topic_name
from rumq.table.errors import BadOption, UnknownOption
from rumq.table.options import near, seconds, truth, word

NAMES = (
    "broker", "topic", "qos", "retain", "username", "passwordFile", "tlsCa", "clientId", "origin", "once", "onceDoubt",
    "stateTopic", "sessionExpiry",
)  # fmt: skip
FOR_ONCE = ("onceDoubt", "stateTopic", "sessionExpiry")
SPARKS_OWN = {"path", "checkpointlocation", "queryname", "outputmode"}
PORTS = {"mqtt": 1883, "mqtts": 8883}
COLUMNS = {
    "topic": ("string",),
    "payload": ("binary", "string"),
    "qos": ("tinyint", "smallint", "int", "bigint"),
    "retain": ("boolean",),
    "properties": ("array<struct<key:string,value:string>>", "map<string,string>"),
    "content_type": ("string",),
    "response_topic": ("string",),
    "correlation_data": ("binary",),
    "message_expiry": ("bigint", "int"),
    "payload_format": ("tinyint", "int"),
}


@dataclass(frozen=True)
class SinkOptions:
    """The broker, and defaults for missing columns. A password is read from its file when it is used.

    once, repeat_in_doubt: see `exactly_once`; state_topic, client_id: prefixes, "" for the query's id
    """

    host: str
    port: int
    tls: bool
    tls_ca: str | None = None
    topic: str | None = None
    qos: int = 1
    retain: bool = False
    username: str | None = None
    password_file: str | None = None
    client_id: str = ""
    origin: bool = False
    once: bool = False
    repeat_in_doubt: bool = False
    state_topic: str = ""
    session_seconds: int = 7 * 86_400
    password: bytes | None = None  # one that is no secret, in place of a file


def parse_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """raises: BadOption, UnknownOption"""
    said = {name.lower(): value for name, value in given.items()}
    check_names(said)
    host, port, tls = parse_broker(said.get("broker", ""))
    once = truth("once", said.get("once", "false"))
    if once and said.get("qos", "2") != "2":
        raise BadOption("qos", said["qos"], "2, or none: once = true publishes with QoS 2")
    return SinkOptions(
        host,
        port,
        tls,
        said.get("tlsca"),
        said.get("topic"),
        2 if once else int(word("qos", said.get("qos", "1"), "0", "1", "2")),
        truth("retain", said.get("retain", "false")),
        said.get("username"),
        said.get("passwordfile"),
        said.get("clientid", ""),
        truth("origin", said.get("origin", "false")),
        once,
        word("onceDoubt", said.get("oncedoubt", "fail"), "fail", "repeat") == "repeat",
        parse_state_topic(said.get("statetopic", "")),
        parse_expiry(said.get("sessionexpiry", "7d")),
    )


def check_names(said: Mapping[str, str]) -> None:
    known = {name.lower(): name for name in NAMES}
    for name in said:
        if name == "password":
            raise UnknownOption(name, "options are in the plans and logs of Spark: put it in a file, passwordFile")
        if name not in known and name not in SPARKS_OWN:
            raise UnknownOption(name, near(name, known))
    for name in FOR_ONCE:
        if name.lower() in said and said.get("once", "false").lower() != "true":
            raise BadOption(name, said[name.lower()], "once = true as well")


def parse_broker(broker: str) -> tuple[str, int, bool]:
    """Host, port, and whether with TLS."""
    allowed = "mqtt://host:1883 or mqtts://host:8883"
    try:
        parts = urlsplit(broker)
        port = parts.port
    except ValueError:
        raise BadOption("broker", broker, allowed) from None
    if parts.scheme not in PORTS or not parts.hostname or parts.path.strip("/") or parts.username:
        raise BadOption("broker", broker, allowed)
    return parts.hostname, port or PORTS[parts.scheme], parts.scheme == "mqtts"


def parse_state_topic(value: str) -> str:
    if value:
        try:
            check_topic_name(value)
        except TopicNameInvalid as fault:
            raise BadOption("stateTopic", value, f"one that may be published to ({fault})") from None
    return value


def parse_expiry(value: str) -> int:
    found = seconds("sessionExpiry", value)
    if not 60 <= found < 2**32:
        raise BadOption("sessionExpiry", value, "a minute at least, such as 7d")
    return int(found)
